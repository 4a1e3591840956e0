"""Files that are written completely or not at all, even after a power cut."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from dpal.errors import InvalidArgument

_CHUNK = 1 << 20


def require_new(folder: Path) -> None:
    """Refuse a folder that has something in it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidArgument("the folder", str(folder), "new or empty. Nothing was changed")


def draft_of(path: Path) -> Path:
    """Where a file is written before it gets its name."""
    return path.with_name(f".{path.name}.draft")


def write_draft(path: Path, write: Callable[[Path], None]) -> Path:
    """Let `write` fill the path's draft, and make it durable. A failure leaves nothing behind."""
    draft = draft_of(path)
    try:
        write(draft)
        with draft.open("rb+") as content:
            os.fsync(content.fileno())
        sync_folder(path.parent)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return draft


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a draft next to the path, then rename it into place."""
    draft = write_draft(path, write)
    try:
        draft.replace(path)
        sync_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def put_in_place(path: Path, sha256: str) -> bool:
    """Whether the file with this hash is there, perhaps after its draft has been renamed into place."""
    if not is_whole(path, sha256):
        if not is_whole(draft_of(path), sha256):
            return False
        draft_of(path).replace(path)
        sync_folder(path.parent)
    return True


def is_whole(path: Path, sha256: str) -> bool:
    """Whether the file exists and has this hash."""
    try:
        return digest(path) == sha256
    except (FileNotFoundError, IsADirectoryError):
        return False


def write_text(path: Path, text: str) -> None:
    """Write a text file, completely or not at all."""
    write_whole(path, lambda draft: _fill(draft, text))


def _fill(draft: Path, text: str) -> None:
    draft.write_text(text, encoding="utf-8")


def overwrite(path: Path) -> bool:
    """Fill a file with zeros where it lies, durably. False if there is none."""
    try:
        with path.open("rb+") as file:
            left = path.stat().st_size
            while left > 0:
                left -= file.write(bytes(min(left, _CHUNK)))
            file.flush()
            os.fsync(file.fileno())
    except FileNotFoundError:
        return False
    return True


def overwrite_and_remove(path: Path) -> None:
    """So that its bytes are gone, as far as the disk allows. Does nothing if there is no such file."""
    if overwrite(path):
        path.unlink()
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
