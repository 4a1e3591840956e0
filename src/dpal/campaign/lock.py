"""One writer: whoever holds the lock on the campaign's lock file. The system lets go of it when a process dies."""

import fcntl
import json
import os
import platform
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

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
    try:
        who = json.loads((folder / NAME).read_text(encoding="utf-8"))
        if who["machine"] == platform.node():
            os.kill(who["process"], 0)
        return _words(who)
    except PermissionError:
        return _holder(folder)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _holder(folder: Path) -> str:
    try:
        return _words(json.loads((folder / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return "Another process"


def _words(who: dict[str, object]) -> str:
    return f"Process {who['process']} on {who['machine']} (since {who['since']})"
