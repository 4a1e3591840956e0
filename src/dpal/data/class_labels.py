"""Labels as they are written in files become class numbers. Classes are stated, never collected from the labels.

Collecting them would publish that a rare class occurs.
"""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpal.errors import BadData, InvalidArgument

UNLABELLED = -1
_SHOWN = 5


def class_names(classes: int | Sequence[str] | None) -> tuple[str, ...]:
    """The names of the classes; a number means 0, 1, 2, …"""
    if classes is None:
        raise InvalidArgument(
            "classes",
            None,
            "stated: give classes=[...] with their names, or how many there are. They are public, so they are never "
            "collected from private records",
        )
    if isinstance(classes, str | bool):
        raise InvalidArgument("classes", classes, "a list of names, or how many there are")
    if isinstance(classes, int | np.integer):
        if classes < 1:
            raise InvalidArgument("classes", classes, "at least 1")
        return tuple(str(number) for number in range(classes))
    if {type(name) for name in classes} & {bool}:
        allowed = "names in quotes: without them, YAML reads no and yes as false and true"
        raise InvalidArgument("classes", list(classes), allowed)
    names = tuple(str(name) for name in classes)
    if not names or len(set(map(composed, names))) < len(names):
        raise InvalidArgument("classes", list(names), "names that all differ, at least one")
    return names


def composed(text: str) -> str:
    """The text with accents as parts of their letters. Some systems write ü as u and two dots, which looks the same."""
    return unicodedata.normalize("NFC", text)


def class_numbers(values: Sequence[object], ids: NDArray[np.str_], classes: tuple[str, ...]) -> NDArray[np.int64]:
    """One class number per record. A text is a name (or a number), a whole number a position; empty is unlabelled."""
    by_name = {composed(name): number for number, name in enumerate(classes)}
    plain = tuple(str(number) for number in range(len(classes)))
    # Classes called 1, 2, 3 and the label 2: the second or the third? Refused below.
    numeric_names = classes != plain and any(re.fullmatch(r"[-+]?\d*\.?\d+\.?", name.strip()) for name in classes)
    numbers = np.full(len(values), UNLABELLED, dtype=np.int64)
    wrong: list[str] = []
    for row, value in enumerate(values):
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        number = _number(value, by_name, plain, numeric_names)
        if number is None:
            wrong.append(f"{str(ids[row])!r} has {value!r}")
        else:
            numbers[row] = number
    if wrong:
        raise BadData(
            f"{len(wrong):,} label(s) are outside the classes {_shown(classes)}: {_shown(wrong)}. Correct them, or "
            "add the class."
        )
    return numbers


def _number(value: object, by_name: dict[str, int], plain: tuple[str, ...], numeric_names: bool) -> int | None:
    if isinstance(value, str):
        text = composed(value.strip())
        if text in by_name:
            return by_name[text]
        return int(text) if text in plain and not numeric_names else None
    if isinstance(value, bool | np.bool_):
        # By name, or as 0 and 1. With the classes "yes" and "no", true as a position would mean "no".
        named = by_name.get(str(bool(value)), by_name.get(str(bool(value)).lower()))
        return int(value) if named is None and plain[:2] == tuple(by_name) else named
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    if not isinstance(value, int | np.integer) or numeric_names:
        return None
    return int(value) if 0 <= value < len(plain) else None


def label_vectors(values: Sequence[object], ids: NDArray[np.str_], classes: tuple[str, ...]) -> NDArray[np.float32]:
    """One row of targets from 0 to 1 per record, one target per class. A record without labels has NaN throughout."""
    targets = np.full((len(values), len(classes)), np.nan, dtype=np.float32)
    for row, value in enumerate(values):
        if value is None:
            continue
        try:
            numbers = np.asarray(value, dtype=np.float32)
        except (TypeError, ValueError):
            numbers = np.empty(0, dtype=np.float32)
        if numbers.shape != (len(classes),) or not ((numbers >= 0) & (numbers <= 1)).all():
            raise BadData(
                f"The labels of record {str(ids[row])!r} are {value!r}. They must be {len(classes)} numbers from 0 to "
                f"1, one for each of {_shown(classes)}."
            )
        targets[row] = numbers
    return targets


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
