"""What is done with one block of a large pool, in this process or in a Ray worker: score it, or take from it.

Both depend on the block, the model, and the key of the step's coins alone, so a task that is done again gives the same
bits, and no order of blocks or number of workers changes anything.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpal.data.id_lookup import is_excluded
from dpal.data.parquet import Block, ParquetTable, Rows, add_to_digest, again, new_digest
from dpal.data.records import Values
from dpal.errors import RecordsChanged
from dpal.imports import optional
from dpal.randomness import RecordCoins
from dpal.selection.acquisition import Acquisition, probabilities_from_logits
from dpal.selection.acquisition_checks import scores_by_record
from dpal.selection.by_blocks import BlockSelection, Counts
from dpal.selection.grid import Grid
from dpal.training.block_prediction import BlockPredictor, one_thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    """A model and an acquisition function."""

    predictor: BlockPredictor = field(repr=False)
    acquisition: Acquisition
    multi_label: bool

    def scores(self, values: Values, block: Block, start: int) -> NDArray[np.float64]:
        """The scores of the rows of a block from this one on."""
        logits = self.predictor.logits(values, block=block.number, start=start, passes=self.acquisition.passes)
        probabilities = probabilities_from_logits(logits, multi_label=self.multi_label)
        return scores_by_record(self.acquisition, probabilities)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Everything that a worker needs, the same for every block."""

    table: ParquetTable = field(repr=False)
    selection: BlockSelection
    coins: RecordCoins = field(repr=False)
    # The score that fills the grid.
    largest: float
    # None for a selection that reads no scores.
    scorer: Scorer | None = field(repr=False)
    # Ids that take no part: labelled, retired or withdrawn ones, as `lookup_of` makes them.
    excluded: NDArray[np.uint64] = field(repr=False)
    # The fingerprint that every block must have, and the key that they were made with.
    expected: tuple[bytes, ...] | None = field(repr=False, default=None)
    key: bytes = field(repr=False, default=b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredBlock:
    """A block's scores in steps of the grid, and how many records are at each candidate (only those with any)."""

    number: int
    grid: Grid = field(repr=False)
    records: int = field(repr=False)
    candidates: NDArray[np.int32] = field(repr=False)
    counts: NDArray[np.int32] = field(repr=False)
    process: int

    def add_to(self, counts: Counts) -> None:
        counts[self.candidates] += self.counts


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenRows:
    """The records that are taken from a block: their places in it, and their rows as an Arrow stream."""

    number: int
    places: NDArray[np.int64] = field(repr=False)
    rows: bytes = field(repr=False)
    process: int


class BlockWorker:
    """Scores blocks, and takes records from them."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def score(self, block: Block) -> ScoredBlock:
        """The first pass over a block."""
        with one_thread():
            return again(lambda: self._score(block))

    def take(self, block: Block, grid: Grid, bound: int) -> TakenRows:
        """The second pass over a block, with the scores of the first."""
        with one_thread():
            return again(lambda: self._take(block, grid, bound))

    def _score(self, block: Block) -> ScoredBlock:
        job, start = self.job, 0
        grid, total, records = np.zeros(block.rows, dtype=np.uint16), np.empty(0, dtype=np.int64), 0
        for rows in self._checked(block):
            count = len(rows.ids)
            left = ~is_excluded(rows.ids, job.excluded)
            if job.scorer is not None:
                scores = job.scorer.scores(rows.values, block, start)
                grid[start : start + count] = np.where(left, job.selection.on_its_grid(scores, job.largest), 0)
            counts = job.selection.counts(grid[start : start + count][left], rows.ids[left], job.coins)
            total = counts if not len(total) else total + counts
            records, start = records + int(left.sum()), start + count
        candidates = np.flatnonzero(total)
        return ScoredBlock(
            number=block.number,
            grid=grid,
            records=records,
            candidates=candidates.astype(np.int32),
            counts=total[candidates].astype(np.int32),
            process=os.getpid(),
        )

    def _take(self, block: Block, grid: Grid, bound: int) -> TakenRows:
        job, start = self.job, 0
        places: list[NDArray[np.int64]] = []
        names: list[bytes] = []
        tables: list[Any] = []
        for table in job.table.read(block, only_ids=True):
            ids = job.table.rows_of_ids(table)
            left = np.flatnonzero(~is_excluded(ids, job.excluded))
            taken = left[job.selection.taken(grid[start : start + len(ids)][left], ids[left], job.coins, bound)]
            places.append(taken + start)
            names += ids[taken].raw()
            start += len(ids)
        chosen = np.concatenate(places)
        if len(chosen):
            start, found = 0, list[bytes]()
            for rows in self._checked(block):
                inside = chosen[(chosen >= start) & (chosen < start + len(rows.ids))]
                tables.append(rows.table.take(inside - start))
                found += rows.ids[inside - start].raw()
                start += len(rows.ids)
            if found != names:
                # The file changed between two reads, so coins were drawn for other records.
                raise changed_block(block)
        return TakenRows(number=block.number, places=chosen, rows=_stream(tables), process=os.getpid())

    def _checked(self, block: Block) -> Iterator[Rows]:
        """The rows of a block in chunks; an error at the end if they are not what they were."""
        job = self.job
        digest, count = new_digest(job.key), 0
        for table in job.table.read(block):
            rows = job.table.rows(table)
            if job.expected is not None:
                add_to_digest(digest, rows)
            count += len(rows.ids)
            yield rows
        if count != block.rows or (job.expected is not None and digest.digest() != job.expected[block.number]):
            raise changed_block(block)


def changed_block(block: Block) -> RecordsChanged:
    """The error for a row group that is not what it was."""
    return RecordsChanged(
        f"Row group {block.row_group} of {block.file} is not as it was when the campaign was created. Nothing was "
        "chosen from it. Restore the file, and run again."
    )


def read_stream(content: bytes) -> Any:
    """The Arrow table of a stream; None if it is empty."""
    return optional("pyarrow.ipc", extra="data").open_stream(content).read_all() if content else None


def _stream(tables: list[Any]) -> bytes:
    if not tables:
        return b""
    arrow = optional("pyarrow", extra="data")
    sink = arrow.BufferOutputStream()
    joined = arrow.concat_tables(tables)
    with arrow.ipc.new_stream(sink, joined.schema) as writer:
        writer.write_table(joined)
    return sink.getvalue().to_pybytes()
