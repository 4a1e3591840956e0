"""Splits by id: a record's part depends only on its id and a public salt, never on the order of records."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpal.errors import BadData, InvalidArgument, MissingData


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The ids of each part, and the salt that chose them."""

    salt: str
    parts: Mapping[str, tuple[str, ...]]

    def write(self, file: Path | str) -> None:
        """Write it to a file, whole or not at all."""
        path = Path(file)
        draft = path.with_name(path.name + ".draft")
        document = {"salt": self.salt, "parts": {name: list(ids) for name, ids in self.parts.items()}}
        draft.write_text(json.dumps(document, indent=1), encoding="utf-8")
        draft.replace(path)

    @staticmethod
    def read(file: Path | str) -> "Split":
        """Read a split from a file."""
        path = Path(file)
        if not path.is_file():
            raise MissingData(f"There is no file {path}.")
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            parts = {str(name): _listed(ids) for name, ids in document["parts"].items()}
            split = Split(salt=str(document["salt"]), parts=parts)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadData(f"{path} is not a split: it needs a salt and parts with lists of ids.") from error
        all_ids = [name for ids in split.parts.values() for name in ids]
        if len(set(all_ids)) < len(all_ids):
            raise BadData(f"{path} has an id twice. The parts of a split must not overlap.")
        return split


def _listed(ids: object) -> tuple[str, ...]:
    if not isinstance(ids, list) or not all(isinstance(name, str) for name in ids):
        raise TypeError(type(ids))
    return tuple(ids)


def split_by_id(
    ids: Iterable[str], sizes: Mapping[str, int | float], *, salt: str, units: Iterable[str] | None = None
) -> Split:
    """Parts of these sizes: whole numbers of records, or fractions below 1; one may be −1, for the rest.

    Records are sorted by a hash of salt and id, an order that looks random and is the same everywhere. With `units`,
    the unit of each id, sizes count units, and no unit is in two parts.
    """
    names = [str(name) for name in ids]
    if len(set(names)) < len(names):
        raise BadData("An id occurs twice. A split is by id, so each id must mean one record.")
    of_names = names if units is None else [str(unit) for unit in units]
    if len(of_names) != len(names):
        raise BadData(f"There are {len(of_names):,} units for {len(names):,} ids.")
    records: dict[str, list[str]] = {}
    for name, unit in zip(names, of_names, strict=True):
        records.setdefault(unit, []).append(name)
    counts = _counts(sizes, len(records))
    ordered = sorted(records, key=lambda unit: hashlib.sha256(f"{salt}\0{unit}".encode()).digest())
    parts: dict[str, tuple[str, ...]] = {}
    start = 0
    for part, count in counts.items():
        parts[part] = tuple(name for unit in ordered[start : start + count] for name in records[unit])
        start += count
    return Split(salt=salt, parts=parts)


def _counts(sizes: Mapping[str, int | float], available: int) -> dict[str, int]:
    counts: dict[str, int] = {}
    for part, size in sizes.items():
        # 1.0 is refused: one record, or all of them?
        if isinstance(size, float) and 0 < size < 1:
            counts[part] = int(size * available)
            if counts[part] == 0:
                raise InvalidArgument(
                    f"the size of the part {part}", size, f"large enough for at least one of {available:,} records"
                )
        elif isinstance(size, int | np.integer) and not isinstance(size, bool) and size >= 1:
            counts[part] = int(size)
        elif size != -1:
            raise InvalidArgument(f"the size of the part {part}", size, "a whole number, a fraction below 1, or -1")
    rest = [part for part, size in sizes.items() if size == -1]
    if len(rest) > 1:
        raise InvalidArgument("the parts that take the rest", rest, "at most one")
    left = available - sum(counts.values())
    if left < (1 if rest else 0):
        raise InvalidArgument("the parts together", sum(counts.values()), f"at most the {available:,} records")
    return {part: left if part in rest else counts[part] for part in sizes}
