"""A pool from a configuration: the name of a source, and its options."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from dpal.data.arrays import from_numpy_file
from dpal.data.datasets import DATASETS, load_dataset
from dpal.data.folders import from_image_folder
from dpal.data.hugging_face import from_hugging_face
from dpal.data.pool import Pool
from dpal.data.tables import from_table
from dpal.errors import InvalidArgument

SOURCES: dict[str, Callable[..., Pool]] = {
    "table": from_table,
    "image-folder": from_image_folder,
    "numpy": from_numpy_file,
    "hugging-face": from_hugging_face,
}
_PATHS = ("file", "folder", "labels", "ids")


def with_absolute_paths(options: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """The options with their paths made absolute from `base` on, so that they hold wherever they are used."""
    return {
        name: str((base / Path(value).expanduser()).resolve()) if name in _PATHS and isinstance(value, str) else value
        for name, value in options.items()
    }


def open_pool(source: str, options: Mapping[str, Any]) -> Pool:
    """The pool of a source: a named dataset, or one of `SOURCES` with the options of its function."""
    if source in DATASETS:
        opener = partial(load_dataset, source)
    elif source in SOURCES:
        opener = SOURCES[source]
    else:
        raise InvalidArgument("the source of data", source, f"one of {', '.join((*DATASETS, *SOURCES))}")
    try:
        inspect.signature(opener).bind(**options)
    except TypeError as error:
        known = ", ".join(inspect.signature(opener).parameters)
        raise InvalidArgument(f"the options of the source {source}", dict(options), f"of {known} ({error})") from error
    return opener(**options)
