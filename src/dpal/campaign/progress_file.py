"""How far a running campaign has come, for other processes: a small file, and a way to ask it to stop.

The process looks for the request itself, so nobody has to send a signal to a process number, which may by now belong
to another program.
"""

import _thread
import json
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dpal.campaign.layout import PROGRESS, STOP_REQUEST
from dpal.campaign.lock import is_alive
from dpal.training.progress import lines_now

_SECONDS = 1.0
# A file that was not written for so long belongs to a process that is gone or hangs.
_STALE_SECONDS = 60.0


@contextmanager
def reporting_progress(folder: Path) -> Generator[None]:
    """Inside, the file says once a second what this process is doing, and a request to stop is like Ctrl-C."""
    path, request, ended = folder / PROGRESS, folder / STOP_REQUEST, threading.Event()
    asked, started = threading.Event(), time.time()

    def report() -> None:
        while True:
            _write(path, started)
            # Whatever its time says: a clock may have been set back since. An older one was removed below.
            if not asked.is_set() and request.exists():
                asked.set()
                _thread.interrupt_main()
            if ended.wait(_SECONDS):
                return

    request.unlink(missing_ok=True)
    restore = _heard(asked)
    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        restore()
        for file in (path, request):
            file.unlink(missing_ok=True)


def _heard(asked: threading.Event) -> Callable[[], None]:
    """Let a request be heard also where Ctrl-C is ignored, as in a process that a script started in the background.

    Returns what puts things back.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        return lambda: None

    def stop(number: int, frame: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt

    def ignore_again() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    signal.signal(signal.SIGINT, stop)
    return ignore_again


def progress_of(folder: Path) -> dict[str, Any] | None:
    """What the running process does: its lines, since when, and which process it is. None if none is running."""
    try:
        document = json.loads((folder / PROGRESS).read_text(encoding="utf-8"))
        gone = document["machine"] == platform.node() and not is_alive(document["process"])
        return None if gone or time.time() - document["at"] > _STALE_SECONDS else document
    except (OSError, ValueError, KeyError, TypeError):
        return None


def request_stop(folder: Path) -> bool:
    """Ask the running process to stop, as Ctrl-C does; False if none is running."""
    if progress_of(folder) is None:
        return False
    (folder / STOP_REQUEST).touch(mode=0o600)
    return True


def _write(path: Path, started: float) -> None:
    # A full disk, a folder that was moved away or too little memory is not this file's to complain about.
    with suppress(OSError, MemoryError):
        document = {
            "process": os.getpid(),
            "machine": platform.node(),
            "since": started,
            "at": time.time(),
            "lines": lines_now(),
        }
        draft = path.with_name(f".{path.name}.draft")
        draft.write_text(json.dumps(document), encoding="utf-8")
        draft.replace(path)
