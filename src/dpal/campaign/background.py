"""A campaign that runs in a process of its own, started from the dashboard; it outlives the page and the server."""

import subprocess
import sys
import threading
import time
from pathlib import Path

from filelock import FileLock

from dpal.campaign.layout import RUN_LOG, START_LOCK
from dpal.campaign.lock import writer_of
from dpal.campaign.progress_file import progress_of
from dpal.errors import CampaignBusy

_SHOWN_BYTES = 4000
_START_SECONDS = 20.0
# What was started for each folder and has not been seen to run: on a busy machine that can take long.
_started: dict[Path, subprocess.Popen[bytes]] = {}


def start_run(folder: Path, *, go_on: bool = False) -> None:
    """`dpal run --wait` in the background; what it prints goes to a file in the campaign's folder."""
    # Also where somebody clicks twice.
    with FileLock(folder / START_LOCK):
        _start(folder, go_on=go_on)


def _start(folder: Path, *, go_on: bool) -> None:
    last = _started.get(folder.absolute())
    is_starting = last is not None and last.poll() is None
    if running := writer_of(folder) or ((is_starting or progress_of(folder)) and "Another process"):
        raise CampaignBusy(f"{running} is running this campaign already. Nothing was started.")
    command = [sys.executable, "-m", "dpal", "run", str(folder), "--wait", *(["--go-on"] if go_on else [])]
    log = folder / RUN_LOG
    log.touch(mode=0o600)
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and program, and a folder we were given
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    _started[folder.absolute()] = process
    # Whoever started it notes its end, so that it does not stay behind as a process that is dead and still there.
    threading.Thread(target=process.wait, daemon=True).start()
    deadline = time.monotonic() + _START_SECONDS
    # Until others can see that it runs: a second click must not start a second one.
    while progress_of(folder) is None and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    if progress_of(folder) is not None:
        # From now on its progress tells. Once that has ended another may start, while this process is still going away.
        del _started[folder.absolute()]


def last_output(folder: Path) -> str:
    """The end of what the last such process printed. It may name records: for whoever runs the campaign only."""
    try:
        content = (folder / RUN_LOG).read_bytes()
    except OSError:
        return ""
    return content[-_SHOWN_BYTES:].decode("utf-8", errors="replace")
