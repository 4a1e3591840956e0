"""Pools from a folder of images."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dpal.data.images import image_records
from dpal.data.labels import class_names, class_numbers
from dpal.data.pool import Pool
from dpal.errors import BadData, InvalidArgument, MissingData

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}


def from_image_folder(
    folder: Path | str,
    *,
    classes: int | Sequence[str] | None = None,
    labels_from_folders: bool = False,
    size: int | None = None,
    channels: int | None = None,
    class_counts_are_public: bool = False,
) -> Pool:
    """Every image below the folder; its path inside the folder is its id. Hidden files and other suffixes are left out.

    With labels_from_folders, the first folder of the path names the class; the classes are then the folders' names
    unless they are given.
    """
    root = Path(folder)
    if not root.is_dir():
        raise MissingData(f"There is no folder {root}.")
    inside = sorted(path.relative_to(root) for path in root.rglob("*") if path.suffix.lower() in SUFFIXES)
    paths = [path for path in inside if not any(part.startswith(".") for part in path.parts)]
    if not paths:
        raise BadData(f"The folder {root} has no images. Suffixes that are read: {', '.join(sorted(SUFFIXES))}.")
    names = np.asarray([path.as_posix() for path in paths], dtype=np.str_)
    if labels_from_folders and classes is None:
        classes = sorted({path.parts[0] for path in paths if len(path.parts) > 1})
        if not classes:
            raise InvalidArgument("labels_from_folders", True, f"left out: {root} has no folders with images in it")
    known = class_names(classes)
    labels = None
    if labels_from_folders:
        values = [path.parts[0] if len(path.parts) > 1 else None for path in paths]
        labels = class_numbers(values, names, known)
    return Pool(
        name=root.name,
        ids=names,
        records=image_records([root / path for path in paths], names, size=size, channels=channels),
        classes=known,
        labels=labels,
        class_counts_are_public=class_counts_are_public,
    )
