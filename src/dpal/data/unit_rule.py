"""How the unit of each record is found: by a column, a second file, a pattern on ids, or a function."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpal.data.ids import as_ids
from dpal.data.pool import Pool
from dpal.data.tables import FORMATS, read_columns
from dpal.data.units import DEFAULT_ROWS, DEFAULT_WORD, Units, unit_names
from dpal.errors import BadData, InvalidArgument, MissingData
from dpal.imports import named


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRule:
    """How units are found: by exactly one of a column, a second file, a pattern on ids, or a function of the id.

    Each looks at one record alone. Units that were found by comparing records would depend on other records.
    """

    # Read by pydantic: a name that is not a field is an error in YAML too.
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    # A column of the table that the records come from.
    column: str | None = None
    # A table with a line for every record, and its columns with the ids and with the units.
    file: str | None = None
    file_id_column: str = "id"
    file_unit_column: str = "unit"
    # A regular expression: its first group, or all that it matches, names the unit.
    pattern: str | None = None
    # The import path package.module:function of a function that returns an id's unit.
    function: str | None = None
    # What a unit is called in plans and certificates.
    name: str = DEFAULT_WORD
    # The most records of a unit that are labelled and trained on; public.
    records: int = DEFAULT_ROWS
    # Whether people give one label for all records of a unit.
    one_label: bool = False

    def __post_init__(self) -> None:
        given = [name for name in _WAYS if getattr(self, name) is not None]
        if len(given) != 1:
            raise InvalidArgument("data.unit", given, f"exactly one of {', '.join(_WAYS)}")

    def applied(self, pool: Pool, *, naming: Callable[[str], str] | None = None) -> Pool:
        """The pool with its units. A pool that was opened with a unit column has them; they only get their word.

        `naming` is the part of an id that a pattern or a function reads; all of it, unless given.
        """
        read = [record_id if naming is None else naming(record_id) for record_id in pool.ids.tolist()]
        if self.column is not None:
            names = _of_column(self.column, pool)
        elif self.file is not None:
            names = _from_file(Path(self.file), self.file_id_column, self.file_unit_column, pool)
        elif self.pattern is not None:
            names = _by_pattern(self.pattern, read)
        else:
            function: Callable[[str], object] = named("data.unit.function", self.function, {})
            names = [function(record_id) for record_id in read]
        return with_units(pool, names, name=self.name, records=self.records, one_label=self.one_label)


_WAYS = ("column", "file", "pattern", "function")


def with_units(
    pool: Pool,
    units: Callable[[str], object] | Sequence[object] | NDArray[np.generic],
    *,
    name: str = DEFAULT_WORD,
    records: int = DEFAULT_ROWS,
    one_label: bool = False,
) -> Pool:
    """The pool with a unit for every record: a function of its id, or one name per record in the pool's order."""
    names = [units(record_id) for record_id in pool.ids.tolist()] if callable(units) else list(units)
    if len(names) != len(pool):
        raise BadData(f"There are {len(names):,} units for {len(pool):,} records.")
    of_records = unit_names(names, pool.ids.tolist(), pool.name)
    return replace(pool, units=Units(word=name, of_records=of_records, rows=records, one_label=one_label))


def in_no_unit_of_a_pool(held_out: Pool) -> Pool:
    """A held-out set of which people have declared that nobody in it is in the pool."""
    return with_units(held_out, lambda record_id: f"held out: {record_id}", records=1)


def _of_column(column: str, pool: Pool) -> list[object]:
    if pool.units is None:
        raise InvalidArgument(
            "data.unit.column",
            column,
            "for records that come from a table with this column. For others, use data.unit.file or data.unit.pattern",
        )
    return pool.units.of_records.tolist()


def _from_file(file: Path, id_column: str, unit_column: str, pool: Pool) -> list[object]:
    if file.suffix.lower() not in FORMATS:
        raise InvalidArgument("data.unit.file", str(file), f"one of {', '.join(FORMATS)}")
    if not file.is_file():
        raise MissingData(f"There is no file {file} (data.unit.file).")
    columns = read_columns(file, [id_column, unit_column])
    if missing := [name for name in (id_column, unit_column) if name not in columns]:
        raise BadData(
            f"{file} has no column {', '.join(missing)}; its columns are {', '.join(columns)}. Name its columns with "
            "data.unit.file_id_column and data.unit.file_unit_column."
        )
    known: dict[str, object] = {}
    for record_id, unit in zip(as_ids(columns[id_column]).tolist(), columns[unit_column], strict=True):
        if known.setdefault(record_id, unit) != unit:
            raise BadData(f"{file} names two units for the record {record_id!r}. Every record is in exactly one.")
    return [known.get(record_id) for record_id in pool.ids.tolist()]


def _by_pattern(pattern: str, ids: Sequence[str]) -> list[object]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InvalidArgument("data.unit.pattern", pattern, f"a regular expression ({error})") from error
    matches = [compiled.search(record_id) for record_id in ids]
    return [match and (match.group(1) if compiled.groups else match.group(0)) for match in matches]
