"""Opens a pool from a configuration: the name of a source and its options."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dpal.data.arrays import from_numpy_file
from dpal.data.folders import from_image_folder
from dpal.data.hugging_face import from_hugging_face
from dpal.data.large_pool import from_parquet
from dpal.data.named.registry import DATASETS, load_dataset
from dpal.data.pool import Pool
from dpal.data.tables import from_table
from dpal.data.unit_rule import UnitRule
from dpal.errors import DpalError, InvalidArgument
from dpal.imports import named

SOURCES: dict[str, Callable[..., Pool]] = {
    "table": from_table,
    "image-folder": from_image_folder,
    "numpy": from_numpy_file,
    "hugging-face": from_hugging_face,
    "parquet": from_parquet,
}
_WITH_COLUMNS = ("table", "hugging-face")
_PATHS = ("file", "folder", "labels", "ids", "path")


def with_absolute_paths(options: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """The options with paths made absolute, starting from `base`, so that they are valid anywhere."""
    return {
        name: str((base / Path(value).expanduser()).resolve())
        if name in _PATHS and isinstance(value, str) and "://" not in value
        else value
        for name, value in options.items()
    }


def with_absolute_file(unit: UnitRule, base: Path) -> UnitRule:
    """The rule with the path of its file made absolute."""
    return unit if unit.file is None else replace(unit, file=str((base / Path(unit.file).expanduser()).resolve()))


def open_pool(source: str, options: Mapping[str, Any], unit: UnitRule | None = None) -> Pool:
    """The pool of a source: a published dataset, one of `SOURCES`, or a function by its import path."""
    if unit is not None:
        return _with_units(source, options, unit)
    datasets = {name: partial(load_dataset, name) for name in DATASETS}
    opener = named("the source of data", source, {**datasets, **SOURCES})
    try:
        inspect.signature(opener).bind(**options)
    except TypeError as error:
        known = ", ".join(inspect.signature(opener).parameters)
        raise InvalidArgument(f"the options of the source {source}", dict(options), f"of {known} ({error})") from error
    pool = opener(**options)
    if not isinstance(pool, Pool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DpalError(f"{source} returned a {type(pool).__name__} instead of a Pool, as dpal.data.from_arrays makes.")
    return pool


def _with_units(source: str, options: Mapping[str, Any], unit: UnitRule) -> Pool:
    if source == "parquet":
        allowed = "left out: a large pool protects each record by itself. Units need the source table"
        raise InvalidArgument("data.unit with the source parquet", unit.name, allowed)
    if unit.column is None:
        opened = open_pool(source, options)
        # Folders that are named after classes are no part of who it is: 0007_1 is the same person in ill and healthy.
        inside = _below_the_first_folder if options.get("labels_from_folders") else None
        return unit.applied(opened, naming=inside)
    if source not in _WITH_COLUMNS:
        raise InvalidArgument(
            "data.unit.column",
            unit.column,
            f"for the sources {' and '.join(_WITH_COLUMNS)}. For {source}, use data.unit.file or data.unit.pattern",
        )
    return unit.applied(open_pool(source, {**options, "unit_column": unit.column}))


def _below_the_first_folder(record_id: str) -> str:
    return record_id.partition("/")[2] or record_id
