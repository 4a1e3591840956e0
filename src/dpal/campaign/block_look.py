"""A first look at every block of a large pool, when its campaign is created: fingerprints, and what must not be."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpal.campaign.fingerprints import fingerprints, fingerprints_of
from dpal.campaign.pool_workers import pool_workers
from dpal.data import Pool
from dpal.data.class_labels import class_numbers
from dpal.data.id_lookup import is_excluded, lookup_of
from dpal.data.large_pool import LargePool
from dpal.data.parquet import Block, ParquetTable, add_to_digest, again, new_digest
from dpal.data.records import TextRecords
from dpal.errors import BadData
from dpal.randomness import IdColumn
from dpal.training.progress import counted

_BUCKETS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What to look with: the campaign's key, and the held-out set that must not share a record with the pool."""

    table: ParquetTable = field(repr=False)
    key: bytes = field(repr=False)
    held_out_ids: NDArray[np.uint64] = field(repr=False)
    held_out_prints: frozenset[bytes] = field(repr=False)
    # What labels in the pool's own column may be, where it names one.
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenBlock:
    """What was seen of a block. `order` has two numbers for each id, equal for equal ids."""

    number: int
    digest: bytes = field(repr=False)
    order: NDArray[np.uint64] = field(repr=False)
    # Records with values that are not finite, and those that the held-out set has too.
    broken: int = field(repr=False)
    shared_ids: int = field(repr=False)
    shared_contents: int = field(repr=False)


class BlockLooker:
    """Looks at blocks, in this process or in a Ray worker."""

    def __init__(self, job: Look) -> None:
        self.job = job

    def look(self, block: Block) -> SeenBlock:
        return again(lambda: self._look(block))

    def _look(self, block: Block) -> SeenBlock:
        job, digest = self.job, new_digest(self.job.key)
        orders: list[NDArray[np.uint64]] = []
        broken = shared_ids = shared_contents = 0
        for table in job.table.read(block):
            rows = job.table.rows(table)
            add_to_digest(digest, rows)
            if job.table.columns.label is not None:
                _require_classes(table.column(job.table.columns.label), job.classes)
            orders.append(lookup_of(rows.ids))
            shared_ids += int(is_excluded(rows.ids, job.held_out_ids).sum())
            if job.held_out_prints:
                shared_contents += sum(p in job.held_out_prints for p in fingerprints(rows.values, job.key))
            for values in rows.values.values() if isinstance(rows.values, dict) else (rows.values,):
                if values.dtype.kind == "f":
                    broken += int((~np.isfinite(values.reshape(len(values), -1)).all(axis=1)).sum())
        return SeenBlock(
            number=block.number,
            digest=digest.digest(),
            order=np.concatenate(orders),
            broken=broken,
            shared_ids=shared_ids,
            shared_contents=shared_contents,
        )


def look_at_blocks(pool: LargePool, key: bytes, *, held_out: Pool | None) -> tuple[tuple[bytes, ...], int]:
    """Every block's fingerprint, and how many records hold values that are not finite.

    Ids that occur twice, and a held-out set that shares records with the pool, are refused. Two passes over two numbers
    for each id, on the disk: memory holds a part of them.
    """
    job = _look(pool, key, held_out)
    digests = [b""] * len(pool.table.blocks)
    broken = shared_ids = shared_contents = 0
    with TemporaryDirectory(prefix="dpal-ids-") as folder, pool_workers(BlockLooker, job, pool.workers) as at_work:
        buckets = [(Path(folder) / str(number)).open("wb+") for number in range(_BUCKETS)]
        try:
            tasks = ((block,) for block in pool.table.blocks)
            total, count = len(pool.table), len(pool.table.blocks)
            for seen in counted(
                at_work.each("look", tasks), f"checking {pool.name}", total=total, each=-(-total // count)
            ):
                digests[seen.number] = seen.digest
                broken += seen.broken
                shared_ids += seen.shared_ids
                shared_contents += seen.shared_contents
                which = (seen.order[:, 0] >> np.uint64(58)).astype(np.int64)
                for number in range(_BUCKETS):
                    buckets[number].write(seen.order[which == number].tobytes())
            twice = 0
            for bucket in buckets:
                bucket.seek(0)
                order = np.frombuffer(bucket.read(), dtype=np.uint64).reshape(-1, 2)
                order = order[np.lexsort((order[:, 1], order[:, 0]))]
                twice += int((order[1:] == order[:-1]).all(axis=1).sum())
        finally:
            for bucket in buckets:
                bucket.close()
    if twice:
        raise BadData(
            f"{twice:,} id(s) of the pool {pool.name} occur more than once. An id must always mean the same single "
            "record. Nothing was created."
        )
    if shared_ids or shared_contents:
        raise BadData(
            f"The held-out set shares {max(shared_ids, shared_contents):,} record(s) with the pool. Its scores are "
            "shown, so it may hold only public records: remove what is shared from one of the two. Nothing was changed."
        )
    return tuple(digests), broken


def _look(pool: LargePool, key: bytes, held_out: Pool | None) -> Look:
    ids: NDArray[np.str_] = np.empty(0, dtype=np.str_)
    prints: Sequence[bytes] = ()
    if held_out is not None:
        if not held_out.ids_are_places:
            ids = held_out.ids
        if not isinstance(held_out.records, TextRecords):
            prints = fingerprints_of(held_out.records, np.arange(len(held_out)), key)
    return Look(
        table=pool.table,
        key=key,
        held_out_ids=lookup_of(IdColumn.of(ids)),
        held_out_prints=frozenset(prints),
        classes=pool.classes,
    )


def _require_classes(column: Any, classes: tuple[str, ...]) -> None:
    """Refuse labels outside the classes now, and not when their records are chosen."""
    labels = column.unique().to_pylist()
    class_numbers(labels, np.full(len(labels), "a record"), classes)
