"""Files that are there whole or not at all, also after a power cut."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from dpal.campaign import faults


def write_whole(path: Path, write: Callable[[Path], None], *, point: str | None = None) -> None:
    """Let `write` fill a draft beside the path, then put it in place at once."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        write(draft)
        with draft.open("rb+") as content:
            os.fsync(content.fileno())
        if point is not None:
            faults.reached(f"{point}-drafted")
        draft.replace(path)
        sync_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


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
