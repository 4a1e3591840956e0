"""Files that are there whole or not at all, also after a power cut."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path


def draft_of(path: Path) -> Path:
    """Where a file is written before it gets its name."""
    return path.with_name(f".{path.name}.draft")


def write_draft(path: Path, write: Callable[[Path], None]) -> Path:
    """Let `write` fill the path's draft, and make it last. What cannot be written leaves nothing behind."""
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
    """Let `write` fill a draft next to the path, then put it in place at once."""
    draft = write_draft(path, write)
    try:
        draft.replace(path)
        sync_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def put_in_place(path: Path, sha256: str) -> bool:
    """Whether the file with this hash is there, once its draft, if that is where it is, has got its name."""
    if not is_whole(path, sha256):
        if not is_whole(draft_of(path), sha256):
            return False
        draft_of(path).replace(path)
        sync_folder(path.parent)
    return True


def is_whole(path: Path, sha256: str) -> bool:
    """Whether the file is there, with this hash."""
    try:
        return digest(path) == sha256
    except (FileNotFoundError, IsADirectoryError):
        return False


def write_text(path: Path, text: str) -> None:
    """A text file, whole or not at all."""
    write_whole(path, lambda draft: _fill(draft, text))


def _fill(draft: Path, text: str) -> None:
    draft.write_text(text, encoding="utf-8")


def sync_folder(folder: Path) -> None:
    """Make a rename last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
