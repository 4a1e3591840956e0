"""`dpal serve` in a process of its own, and the links that it prints."""

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from urllib.parse import urlsplit

from warm_processes import COMMAND_LINE, Started

START_SECONDS = 60


@dataclass
class Served:
    """A running server."""

    process: Started
    base: str
    # Whom each link is for: "operator", or a person's name.
    links: dict[str, str]
    log: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(urlsplit(self.base).port or 0)

    def token(self, who: str) -> str:
        return self.links[who].partition("#token=")[2]

    def path(self, who: str) -> str:
        """The path of a link."""
        return urlsplit(self.links[who]).path

    def kill(self) -> None:
        """SIGKILL, as when a machine dies."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=30)
        self.process.stdout.close()


def start(*folders: Path, port: int = 0, words: tuple[str, ...] = ()) -> Served:
    """Start `dpal serve` and wait until it has printed its links."""
    environment = os.environ | {"PYTHONUNBUFFERED": "1", "COLUMNS": "400"}
    process = Started(COMMAND_LINE, "serve", *folders, "--port", port, *words, environment=environment)
    lines: Queue[str] = Queue()
    log: list[str] = []

    def read() -> None:
        for line in process.stdout:
            log.append(line)
            lines.put(line)

    threading.Thread(target=read, daemon=True).start()
    served = Served(process=process, base="", links={}, log=log)
    while "operator" not in served.links or not _is_quiet(lines):
        try:
            line = lines.get(timeout=START_SECONDS)
        except Empty:
            process.kill()
            raise AssertionError(f"no links within {START_SECONDS} s: {log}") from None
        if found := re.match(r"Serving at (\S+)\. ", line):
            served.base = found.group(1)
        if found := re.match(r"  (.*): (http\S+#token=\S+)$", line.rstrip()):
            who = found.group(1)
            name = "operator" if who.startswith("you, who") else who.rpartition(" (")[0]
            served.links[name] = found.group(2)
    return served


def _is_quiet(lines: "Queue[str]") -> bool:
    """Whether nothing more is printed for a moment."""
    import time

    time.sleep(0.3)
    return lines.empty()


def stop(served: Served) -> None:
    """Stop it as Ctrl-C does."""
    if served.process.poll() is None:
        served.process.send_signal(signal.SIGINT)
        try:
            served.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            served.process.kill()
    served.process.stdout.close()


@contextlib.contextmanager
def serving(*folders: Path, words: tuple[str, ...] = ()) -> Generator[Served]:
    """A server for the block."""
    served = start(*folders, words=words)
    try:
        yield served
    finally:
        stop(served)
