"""One writer: whoever holds the lock on the campaign's lock file. The system lets go of it when a process dies."""

import fcntl
import json
import os
import platform
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpal.errors import CampaignBusy

NAME = "writer.lock"


@contextmanager
def only_writer(folder: Path) -> Generator[None]:
    """Inside, this process alone may write. A second one is refused at once."""
    with (folder / NAME).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CampaignBusy(
                f"{_holder(folder)} is writing to the campaign {folder}. Wait until it is done, or stop it; "
                "dpal status works meanwhile. Nothing was changed."
            ) from error
        file.truncate(0)
        who = {"process": os.getpid(), "machine": platform.node(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
        file.write(json.dumps(who))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def writer_of(folder: Path) -> str | None:
    """Who is writing now, as far as this machine can tell. Without touching the lock, which somebody may be taking."""
    who = _noted(folder)
    if who is None or (who["machine"] == platform.node() and not _is_alive(who["process"])):
        return None
    return _words(who)


def _holder(folder: Path) -> str:
    who = _noted(folder)
    return "Another process" if who is None else _words(who)


def _noted(folder: Path) -> dict[str, Any] | None:
    """What the last writer wrote down. One that was killed leaves it behind."""
    try:
        who = json.loads((folder / NAME).read_text(encoding="utf-8"))
        return who if {"process", "machine", "since"} <= set(who) else None
    except (OSError, ValueError, TypeError):
        return None


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except PermissionError:
        return True  # somebody else's
    except (OSError, OverflowError):
        return False
    return True


def _words(who: dict[str, Any]) -> str:
    return f"Process {who['process']} on {who['machine']} (since {who['since']})"
