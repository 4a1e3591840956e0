"""One writer at a time: the holder of the lock on the folder's lock file. The system releases it if a process dies."""

import json
import os
import platform
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from dpal.campaign.layout import LOCK, WRITER
from dpal.errors import CampaignBusy


@contextmanager
def only_writer(folder: Path) -> Generator[None]:
    """Inside, only this process may write. A second one is refused at once."""
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        raise CampaignBusy(
            f"{_holder(folder)} is writing to the campaign {folder}. Wait until it is done, or stop it; "
            "dpal status works in the meantime. Nothing was changed."
        ) from error
    # In a separate file: on Windows a locked file cannot be read.
    note = folder / WRITER
    try:
        who = {"process": os.getpid(), "machine": platform.node(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
        note.write_text(json.dumps(who), encoding="utf-8")
        yield
    finally:
        try:
            # Before the release: afterwards it may be the next writer's.
            note.unlink(missing_ok=True)
        finally:
            lock.release()


def writer_of(folder: Path) -> str | None:
    """Who is writing now, as far as this machine can tell. It does not touch the lock, which someone may be taking."""
    who = _noted(folder)
    if who is None or (who["machine"] == platform.node() and not is_alive(who["process"])):
        return None
    return _words(who)


def _holder(folder: Path) -> str:
    who = _noted(folder)
    return "Another process" if who is None else _words(who)


def _noted(folder: Path) -> dict[str, Any] | None:
    """What the last writer wrote down. A writer that was killed leaves it behind."""
    try:
        who = json.loads((folder / WRITER).read_text(encoding="utf-8"))
        return who if {"process", "machine", "since"} <= set(who) else None
    except (OSError, ValueError, TypeError):
        return None


def is_alive(process: int) -> bool:
    """Whether a process of this machine is there, as far as can be told."""
    if os.name == "nt":
        # There, signal 0 would end the process. The note of a killed writer stays until the next one writes.
        return True
    try:
        os.kill(process, 0)
    except PermissionError:
        return True  # it belongs to another user
    except (OSError, OverflowError):
        return False
    return True


def _words(who: dict[str, Any]) -> str:
    return f"Process {who['process']} on {who['machine']} (since {who['since']})"
