"""The units of a pool's records, and a table with a row of seats for every unit."""

import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dpal.data.ids import as_ids
from dpal.errors import BadData, InvalidArgument

DEFAULT_WORD = "person"
# Enough for most people's images; empty seats cost time, and nothing else.
DEFAULT_ROWS = 4
_MOST_ROWS = 1000
_SHOWN = 5
# In a table of positions: an empty seat.
EMPTY = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Units:
    """The unit of each record, in the order of the pool. Which units there are is public; their records are not."""

    of_records: NDArray[np.str_] = field(repr=False)
    # What a unit is called: patient, lesion, customer.
    word: str = DEFAULT_WORD
    # The most records of a unit that are labelled and trained on; public.
    rows: int = DEFAULT_ROWS
    # Whether people give one label for all records of a unit.
    one_label: bool = False

    def __post_init__(self) -> None:
        if not self.word.strip() or self.word != self.word.strip() or not self.word.isprintable():
            raise InvalidArgument("data.unit.name", self.word, "a word such as patient")
        if self.word == "record":
            raise InvalidArgument("data.unit.name", self.word, "another word: a unit is what records belong to")
        if isinstance(self.rows, bool) or not 1 <= self.rows <= _MOST_ROWS:
            allowed = f"a whole number from 1 to {_MOST_ROWS:,}: the most records of a unit that are used"
            raise InvalidArgument("data.unit.records", self.rows, allowed)

    @property
    def names(self) -> list[str]:
        """Each unit once, in the order in which the units first appear."""
        return list(dict.fromkeys(self.of_records.tolist()))

    def facts(self) -> dict[str, object]:
        """What is public about the units, apart from their names."""
        return {"word": self.word, "rows": self.rows, "one_label": self.one_label}

    def take(self, positions: NDArray[np.integer]) -> "Units":
        """The units of some of the records."""
        return replace(self, of_records=self.of_records[positions])


def unit_names(names: Sequence[object], ids: Sequence[str], where: str) -> NDArray[np.str_]:
    """A name for every record; a record without one is refused."""
    missing = [record_id for record_id, unit in zip(ids, names, strict=True) if _is_missing(unit)]
    if missing:
        more = "" if len(missing) <= _SHOWN else f" and {len(missing) - _SHOWN:,} more"
        raise BadData(
            f"{len(missing):,} record(s) of {where} have no unit: {', '.join(map(repr, missing[:_SHOWN]))}{more}. "
            "Every record must be in exactly one: complete the column or file, or correct the pattern."
        )
    for record_id, unit in zip(ids, names, strict=True):
        if isinstance(unit, bool) or not isinstance(unit, str | int | np.integer):
            raise BadData(
                f"The unit of the record {record_id!r} of {where} is {unit!r}. Units are texts or whole numbers: 7.0 "
                "and 7 would be two people."
            )
    # Names that look the same are the same: otherwise one person would be two, and have the promise twice.
    return as_ids([unicodedata.normalize("NFC", str(unit)).strip() for unit in names])


def _is_missing(unit: object) -> bool:
    return unit is None or unit != unit or not str(unit).strip()


def unit_table(
    units: Sequence[str], ids: Sequence[str], positions: dict[str, int], rows: int
) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """The names of all units, and for each a row with the positions of its records; empty seats are `EMPTY`.

    `ids` and `units` are those of the campaign's creation; `positions` has the records that are still there. A unit has
    the same row whatever happens to other units, and its first records take its seats, whichever were withdrawn since.
    """
    places = {unit: row for row, unit in enumerate(dict.fromkeys(units))}
    table = np.full((len(places), rows), EMPTY, dtype=np.int64)
    used = np.zeros(len(places), dtype=np.int64)
    for unit, record_id in zip(units, ids, strict=True):
        row = places[unit]
        if used[row] < rows:
            table[row, used[row]] = positions.get(record_id, EMPTY)
            used[row] += 1
    return np.asarray(list(places), dtype=np.str_), table


def seated_records(table: NDArray[np.int64], kept: Collection[int]) -> NDArray[np.int64]:
    """The table with the seats of all other records empty."""
    return np.where(np.isin(table, np.fromiter(kept, dtype=np.int64)), table, EMPTY)


def mean_by_unit(values: NDArray[np.float64], table: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean over each unit's records, from values with one row per seat, column by column. 0 for an empty unit.

    Added up seat by seat, so that no unit's mean depends on another unit, not by a bit.
    """
    total, count = np.zeros(len(table)), np.zeros(len(table))
    for seat in range(table.shape[1]):
        present = table[:, seat] != EMPTY
        total = np.where(present, total + values[seat], total)
        count += present
    return np.where(count > 0, total / np.maximum(count, 1), 0.0)
