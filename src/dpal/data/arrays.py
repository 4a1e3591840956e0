"""Pools from numpy arrays and from .npy files, which stay on disk as memory maps."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpal.data.class_labels import class_names, class_numbers, label_vectors
from dpal.data.ids import as_ids
from dpal.data.pool import Pool
from dpal.data.records import ArrayRecords
from dpal.errors import BadData, InvalidArgument, MissingData


def from_arrays(
    values: NDArray[np.generic] | Mapping[str, NDArray[np.generic]],
    *,
    classes: int | Sequence[str] | None,
    labels: Sequence[object] | NDArray[np.generic] | None = None,
    ids: Sequence[object] | NDArray[np.generic] | None = None,
    multi_label: bool = False,
    class_counts_are_public: bool = False,
    name: str = "arrays",
) -> Pool:
    """A pool of rows. Images are (records, channels, height, width). Without ids, a record's row number is its id."""
    records = ArrayRecords(values)
    names = np.arange(len(records)).astype(np.str_) if ids is None else as_ids(ids)
    if len(names) != len(records):
        raise BadData(f"There are {len(names):,} ids for {len(records):,} records.")
    known = class_names(classes)
    if labels is not None and len(labels) != len(names):
        raise BadData(f"There are {len(labels):,} labels for {len(names):,} records.")
    numbers = None
    if labels is not None:
        numbers = (
            label_vectors(list(labels), names, known) if multi_label else class_numbers(list(labels), names, known)
        )
    return Pool(
        name=name,
        ids=names,
        records=records,
        classes=known,
        labels=numbers,
        multi_label=multi_label,
        class_counts_are_public=class_counts_are_public,
        ids_are_places=ids is None,
    )


def from_numpy_file(
    file: Path | str,
    *,
    classes: int | Sequence[str] | None,
    labels: Path | str | None = None,
    ids: Path | str | None = None,
    multi_label: bool = False,
    class_counts_are_public: bool = False,
) -> Pool:
    """A pool from a .npy file with one row per record, as a memory map. Labels and ids are in separate .npy files."""
    return from_arrays(
        _array(Path(file)),
        classes=classes,
        labels=None if labels is None else _array(Path(labels)),
        ids=None if ids is None else _array(Path(ids)).tolist(),
        multi_label=multi_label,
        class_counts_are_public=class_counts_are_public,
        name=Path(file).stem,
    )


def _array(file: Path) -> NDArray[np.generic]:
    if file.suffix != ".npy":
        raise InvalidArgument("file", str(file), "a .npy file")
    if not file.is_file():
        raise MissingData(f"There is no file {file}.")
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise BadData(
            f"{file} is not an array that can be read without running code from it ({type(error).__name__}). Save it "
            "with numpy.save and a dtype of numbers or texts."
        ) from error
    if array.ndim == 0:
        raise BadData(f"{file} holds one number, not one row per record.")
    return array
