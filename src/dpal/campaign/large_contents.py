"""What a campaign on a large pool keeps of it: a fingerprint for every row group, and a copy of the records asked for.

A billion records are some ten thousand fingerprints. The copies are what people label and models train on; they are
compared with fingerprints of their own whenever they are read.
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dpal.campaign.files import write_text, write_whole
from dpal.campaign.fingerprints import Contents, fingerprints_of
from dpal.campaign.layout import ASKED, BLOCKS
from dpal.campaign.state import State
from dpal.data.large_pool import LargePool
from dpal.data.parquet import ParquetTable, joined
from dpal.errors import DamagedCampaign, RecordsChanged
from dpal.imports import optional

# Columns of a copy, next to those of the pool.
_ID, _FINGERPRINT = "dpal:id", "dpal:fingerprint"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPrints:
    """Every row group: its file, number and rows, and the keyed fingerprint of all that it holds."""

    entries: tuple[tuple[str, int, int, str], ...] = field(repr=False)

    @staticmethod
    def of(table: ParquetTable, digests: tuple[bytes, ...]) -> "BlockPrints":
        pairs = zip(table.blocks, digests, strict=True)
        return BlockPrints(
            entries=tuple((block.name, block.row_group, block.rows, digest.hex()) for block, digest in pairs)
        )

    def _text(self) -> str:
        return json.dumps([list(entry) for entry in self.entries], separators=(",", ":"))

    def hash(self) -> str:
        return hashlib.sha256(self._text().encode()).hexdigest()

    def write(self, folder: Path) -> None:
        write_text(folder / BLOCKS, self._text())

    @staticmethod
    def read(folder: Path, *, expected: str) -> "BlockPrints":
        """Read them from the campaign's folder. A file that differs from what was recorded is refused."""
        try:
            prints = BlockPrints(
                entries=tuple(
                    (str(name), int(group), int(rows), str(digest))
                    for name, group, rows, digest in json.loads((folder / BLOCKS).read_text(encoding="utf-8"))
                )
            )
        except (OSError, ValueError, TypeError) as error:
            raise _damaged(folder / BLOCKS) from error
        if prints.hash() != expected:
            raise _damaged(folder / BLOCKS)
        return prints

    def for_table(self, table: ParquetTable, *, charged: str = "Nothing was charged.") -> tuple[bytes, ...]:
        """The fingerprint of each block of a table. Files, row groups or rows that are others are refused.

        `charged` is what the error says about charges.
        """
        now = [(block.name, block.row_group, block.rows) for block in table.blocks]
        if now != [entry[:3] for entry in self.entries]:
            known = {entry[:3] for entry in self.entries}
            other = [entry for entry in now if entry not in known] or [entry for entry in known if entry not in now]
            where = f": row group {other[0][1]} of {other[0][0]}" if other else ": their order"
            raise RecordsChanged(
                f"The row groups of {table.uri} are not those with which the campaign was created{where}. A campaign's "
                f"pool cannot grow or be written again. Restore the files. {charged}"
            )
        return tuple(bytes.fromhex(entry[3]) for entry in self.entries)


def write_asked(folder: Path, group: int, pool: LargePool, rows: Any, key: bytes) -> str:
    """Keep a copy of the rows that a selection asks for; returns the hash to be recorded with the selection."""
    if rows is None:
        return Contents(ids=(), fingerprints=(), stamps=(), key=key).hash()
    arrow, parquet = optional("pyarrow", extra="data"), optional("pyarrow.parquet", extra="data")
    asked = pool.with_rows(rows)
    prints = fingerprints_of(asked.records, np.arange(len(asked)), key)
    table = rows.append_column(_ID, arrow.array(asked.ids.tolist(), type=arrow.string()))
    table = table.append_column(_FINGERPRINT, arrow.array(prints, type=arrow.binary()))
    place = _file(folder, group)
    place.parent.mkdir(mode=0o700, exist_ok=True)
    write_whole(place, lambda draft: _write(parquet, table, draft))
    return _contents([table], key).hash()


def asked_contents(folder: Path, state: State, key: bytes) -> Contents:
    """Ids and fingerprints of all records that were asked for. A copy that is not what was recorded is refused."""
    tables = [_read(folder, group, only_prints=True) for group in _groups(state)]
    for group, table in zip(_groups(state), tables, strict=True):
        if _contents([table], key).hash() != state.selected[group].contents:
            raise _damaged(_file(folder, group))
    return _contents(tables, key)


def at_hand(pool: LargePool, state: State, folder: Path) -> LargePool:
    """The pool with the records at hand that were asked for and are not withdrawn."""
    arrow = optional("pyarrow", extra="data")
    tables: list[Any] = []
    for group in _groups(state):
        table = _read(folder, group)
        kept = [name not in state.withdrawn for name in table.column(_ID).to_pylist()]
        tables.append(table.drop_columns([_ID, _FINGERPRINT]).filter(arrow.array(kept)))
    rows = joined(tables) if tables else None
    return pool if rows is None or not rows.num_rows else pool.with_rows(rows)


def blank_withdrawn(folder: Path, state: State) -> None:
    """Remove the contents of withdrawn records from the copies, if they are there. Ids and fingerprints stay."""
    arrow = optional("pyarrow", extra="data")
    parquet = optional("pyarrow.parquet", extra="data")
    for group in _groups(state):
        table = _read(folder, group)
        values = [name for name in table.column_names if name not in (_ID, _FINGERPRINT)]
        is_gone = np.asarray([name in state.withdrawn for name in table.column(_ID).to_pylist()], dtype=np.bool_)
        if not (is_gone & table.column(values[0]).is_valid().to_numpy()).any():
            continue
        kept = arrow.array([None if gone else row for row, gone in enumerate(is_gone.tolist())], type=arrow.int64())
        for name in values:
            place = table.column_names.index(name)
            table = table.set_column(place, name, table.column(place).combine_chunks().take(kept))
        write_whole(_file(folder, group), lambda draft, table=table: _write(parquet, table, draft))


def remove_unrecorded(folder: Path, state: State) -> None:
    """Remove copies, and drafts of copies, of selections that were never recorded: they may be made otherwise now."""
    kept = {_file(folder, group) for group in _groups(state)}
    for path in (folder / ASKED).glob("*group-*"):
        if path not in kept:
            path.unlink()


def asked_is_whole(folder: Path, state: State) -> bool:
    """Whether fingerprints and copies are as they were recorded."""
    try:
        BlockPrints.read(folder, expected=state.created.contents)
        asked_contents(folder, state, b"")
    except DamagedCampaign:
        return False
    return True


def _groups(state: State) -> list[int]:
    return [group for group, selected in enumerate(state.selected) if selected.to_label]


def _file(folder: Path, group: int) -> Path:
    return folder / ASKED / f"group-{group}.parquet"


def _write(parquet: Any, table: Any, draft: Path) -> None:
    draft.touch(mode=0o600)
    parquet.write_table(table, draft)


def _read(folder: Path, group: int, *, only_prints: bool = False) -> Any:
    parquet, arrow = optional("pyarrow.parquet", extra="data"), optional("pyarrow", extra="data")
    try:
        columns = [_ID, _FINGERPRINT] if only_prints else None
        return parquet.ParquetFile(_file(folder, group)).read(columns=columns)
    except (arrow.ArrowException, OSError) as error:
        raise _damaged(_file(folder, group)) from error


def _contents(tables: list[Any], key: bytes) -> Contents:
    ids = tuple(name for table in tables for name in table.column(_ID).to_pylist())
    prints = tuple(content for table in tables for content in table.column(_FINGERPRINT).to_pylist())
    return Contents(ids=ids, fingerprints=prints, stamps=("",) * len(ids), key=key)


def _damaged(path: Path) -> DamagedCampaign:
    return DamagedCampaign(
        f"{path} is missing or differs from what the campaign recorded. Nothing was changed. Restore the campaign's "
        "folder from a backup: without this file it cannot be checked whether the records are still the same."
    )
