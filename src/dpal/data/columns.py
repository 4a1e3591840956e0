"""From the columns of a table to a pool, wherever the table came from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpal.data.class_labels import class_names, class_numbers, label_vectors
from dpal.data.ids import as_ids
from dpal.data.images import image_records
from dpal.data.pool import Pool
from dpal.data.records import Records, TextRecords, is_text
from dpal.data.units import Units, unit_names
from dpal.errors import BadData, DpalError, InvalidArgument

Columns = Mapping[str, Sequence[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """What each column means. Several text columns make records of several texts; several label columns are
    multi-label targets, one per class.
    """

    text: tuple[str, ...] = ()
    image: str | None = None
    label: tuple[str, ...] = ()
    identity: str | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        if bool(self.text) == (self.image is not None):
            raise DpalError("Name either text columns or an image column, not both and not neither.")

    def names(self) -> tuple[str, ...]:
        """Each column once: the path of an image is often its id too."""
        every = (self.identity, *self.text, self.image, *self.label, self.unit)
        return tuple(dict.fromkeys(name for name in every if name is not None))


def as_names(names: str | Sequence[str] | None) -> tuple[str, ...]:
    """One column's name, or several."""
    if names is None:
        return ()
    return (names,) if isinstance(names, str) else tuple(names)


def pool_from_columns(
    columns: Columns,
    roles: Roles,
    *,
    name: str,
    folder: Path,
    classes: int | Sequence[str] | None,
    multi_label: bool,
    size: int | None,
    channels: int | None,
    class_counts_are_public: bool,
    window: Sequence[float] | None = None,
) -> Pool:
    """The pool. Image paths are relative to `folder`. Without an id column, a record's row number is its id."""
    missing = [column for column in roles.names() if column not in columns]
    if missing:
        raise BadData(f"{name} has no column {', '.join(missing)}. Its columns are {', '.join(columns) or 'none'}.")
    count = len(next(iter(columns.values()))) if columns else 0
    if count == 0:
        raise BadData(f"{name} is empty: it has no records.")
    ids = np.arange(1, count + 1).astype(np.str_) if roles.identity is None else as_ids(columns[roles.identity])
    known = class_names(classes)
    images = partial(image_records, size=size, channels=channels, window=window)
    return Pool(
        name=name,
        ids=ids,
        records=_records(columns, roles, ids, folder, images),
        classes=known,
        labels=_labels(columns, roles, ids, known, multi_label),
        multi_label=multi_label or len(roles.label) > 1,
        class_counts_are_public=class_counts_are_public,
        ids_are_places=roles.identity is None,
        units=None if roles.unit is None else Units(of_records=unit_names(columns[roles.unit], ids.tolist(), name)),
    )


def _records(
    columns: Columns, roles: Roles, ids: NDArray[np.str_], folder: Path, images: Callable[..., Records]
) -> Records:
    if roles.image is not None:
        encoded = [_encoded(value, str(ids[row]), folder) for row, value in enumerate(columns[roles.image])]
        return images(encoded, ids)
    texts = list(zip(*(columns[column] for column in roles.text), strict=True))
    for row, cells in enumerate(texts):
        if not all(is_text(cell) for cell in cells):
            raise BadData(f"The text of record {str(ids[row])!r} is missing or not a text.")
    return TextRecords([tuple(str(cell) for cell in cells) for cells in texts])


def _encoded(value: object, name: str, folder: Path) -> Path | bytes:
    """A path, encoded bytes, or the struct of both that Hugging Face writes."""
    if isinstance(value, Mapping):
        value = value.get("bytes") or value.get("path")
    if isinstance(value, bytes):
        return value
    if isinstance(value, str) and value.strip():
        return folder / value
    raise BadData(f"The image of record {name!r} is missing: its cell is neither a path nor encoded bytes.")


def _labels(
    columns: Columns, roles: Roles, ids: NDArray[np.str_], classes: tuple[str, ...], multi_label: bool
) -> NDArray[np.int64] | NDArray[np.float32] | None:
    if not roles.label:
        return None
    if len(roles.label) == 1:
        values = columns[roles.label[0]]
        return label_vectors(values, ids, classes) if multi_label else class_numbers(values, ids, classes)
    if len(roles.label) != len(classes):
        raise InvalidArgument("the number of label columns", len(roles.label), f"{len(classes)}, one per class")
    rows = zip(*(columns[column] for column in roles.label), strict=True)
    return label_vectors([None if all(_empty(cell) for cell in row) else row for row in rows], ids, classes)


def _empty(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())
