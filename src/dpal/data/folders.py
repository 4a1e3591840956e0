"""Pools from a folder of images."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from dpal.data.class_labels import class_names, class_numbers
from dpal.data.ids import as_ids
from dpal.data.images import image_records
from dpal.data.pool import Pool
from dpal.errors import BadData, InvalidArgument, MissingData

SUFFIXES = {".bmp", ".dcm", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}


def from_image_folder(
    folder: Path | str,
    *,
    classes: int | Sequence[str] | None = None,
    labels_from_folders: bool = False,
    size: int | None = None,
    channels: int | None = None,
    window: Sequence[float] | None = None,
    class_counts_are_public: bool = False,
) -> Pool:
    """Every image below the folder; its path inside the folder is its id. Hidden files and other suffixes are left out.

    `size` and `channels` (1 for grey, 3 for colour) must be given; for more than 8 bits, and DICOM, also the `window`,
    (center, width). With labels_from_folders, the first folder of the
    path is the record's label; the classes are still given, since the folders' names come from private records.
    """
    root = Path(folder)
    if not root.is_dir():
        raise MissingData(f"There is no folder {root}.")
    paths = _relative(root)
    if not paths:
        raise BadData(f"The folder {root} has no images. Suffixes that are read: {', '.join(sorted(SUFFIXES))}.")
    names = as_ids(path.as_posix() for path in paths)
    known = class_names(classes)
    labels = None
    if labels_from_folders:
        if all(len(path.parts) == 1 for path in paths):
            raise InvalidArgument("labels_from_folders", True, f"left out: {root} has no subfolders with images")
        values = [path.parts[0] if len(path.parts) > 1 else None for path in paths]
        labels = class_numbers(values, names, known)
    return Pool(
        name=root.name,
        ids=names,
        records=image_records([root / path for path in paths], names, size=size, channels=channels, window=window),
        classes=known,
        labels=labels,
        ids_are_places=True,
        class_counts_are_public=class_counts_are_public,
    )


def image_ids(folder: Path) -> list[str]:
    """The ids of a folder's images. No image is read."""
    return [path.as_posix() for path in _relative(folder)]


def _relative(root: Path) -> list[Path]:
    return sorted(path.relative_to(root) for path in _image_files(root))


def _image_files(root: Path) -> Iterator[Path]:
    """Links to folders are followed, and an unreadable folder is an error: no record goes missing silently."""
    seen: set[Path] = set()
    for place, folders, files in os.walk(root, followlinks=True, onerror=_refuse):
        if Path(place).resolve() in seen:
            raise BadData(f"The folder {place} links to one that is read already: its images would occur twice.")
        seen.add(Path(place).resolve())
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(place, name) for name in files if Path(name).suffix.lower() in SUFFIXES and name[0] != ".")


def _refuse(error: OSError) -> None:
    raise BadData(f"The folder {error.filename} cannot be read ({error.strerror}).") from error
