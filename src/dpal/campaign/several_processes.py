"""Running a campaign in several processes of one machine: who this one is, starting the others, and noticing deaths."""

import _thread
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpal.errors import DpalError, InvalidArgument, ProcessLost

if TYPE_CHECKING:
    from dpal.training.processes import Processes

# How rank 0 tells the processes that it starts who they are: their rank, their number, and where they meet.
VARIABLE = "DPAL_PROCESS"
# What torchrun sets.
_TORCHRUN, _RANK, _COUNT, _LOCAL_COUNT = "TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"
_LOOK_SECONDS = 0.05
# After another process has died: how long rank 0 has to notice by itself, and to end once it is told; and how long the
# others have to follow it.
_OWN_END_SECONDS = 3.0
_GRACE_SECONDS = 10.0
_END_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which of the processes of a run this one is."""

    rank: int
    count: int
    meeting_point: str
    by_torchrun: bool

    @classmethod
    def of_this_process(cls) -> "Place | None":
        """What torchrun or rank 0 has said; None if this process was started in the usual way."""
        if own := os.environ.get(VARIABLE):
            rank, count, meeting_point = own.split(" ", 2)
            return cls(rank=int(rank), count=int(count), meeting_point=meeting_point, by_torchrun=False)
        if _TORCHRUN not in os.environ:
            return None
        if os.environ[_COUNT] != os.environ[_LOCAL_COUNT]:
            raise DpalError(
                f"torchrun has started {os.environ[_COUNT]} processes on several machines. What they send each other "
                "has no noise yet and must not leave a machine, so dpal trains on one only. Leave out --nnodes. "
                "Nothing was charged."
            )
        rank, count = int(os.environ[_RANK]), int(os.environ[_COUNT])
        return cls(rank=rank, count=count, meeting_point="", by_torchrun=True)


def work(folder: Path, place: Place) -> None:
    """Be one of the other processes, to the end; and end at once if rank 0 is gone."""
    # Ctrl-C reaches every process of a terminal; rank 0 decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not place.by_torchrun:
        # Rank 0 holds the other end of it, which closes when it dies. Before torch is imported, which takes seconds.
        threading.Thread(target=_end_with_input, daemon=True).start()
    from dpal.campaign.phase_worker import work as serve

    serve(folder, rank=place.rank, count=place.count, meeting_point=place.meeting_point)


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


@contextmanager
def training_processes(folder: Path, count: int | None, place: Place | None) -> Generator["Processes"]:
    """The processes that train, for rank 0. The others end when the block does, and if one of them dies it ends."""
    if count is not None and count < 1:
        raise InvalidArgument("--processes", count, "at least 1")
    if place is not None and count not in (None, place.count):
        raise InvalidArgument("--processes", count, f"left out: torchrun has started {place.count} already")
    if (place.count if place is not None else count or 1) == 1:
        from dpal.training.processes import OneProcess

        yield OneProcess()
    elif place is not None:
        from dpal.training.process_group import ProcessGroup

        group = ProcessGroup(rank=0, count=place.count, meeting_point=place.meeting_point)
        yield group
        # Only now: after an error, torchrun ends the others.
        group.send(b"")
        group.close()
    else:
        with _Started(folder, count or 1).watched() as group:
            yield group


class _Started:
    """Processes that rank 0 starts when there is something to train for the first time."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count = folder, count
        self.others: list[subprocess.Popen[bytes]] = []
        # Which one has ended before its time, in words.
        self.lost: str | None = None
        self._ended, self._lock = threading.Event(), threading.Lock()

    @contextmanager
    def watched(self) -> Generator["Processes"]:
        """Inside, the death of another process ends this one as Ctrl-C does; both become one sentence."""
        from dpal.training.process_group import LateGroup

        with tempfile.TemporaryDirectory(prefix="dpal-") as private:
            group = LateGroup(self.count, f"{private}/meeting-point", self.start)
            try:
                yield group
            except (KeyboardInterrupt, ProcessLost) as error:
                self._settle(wait=isinstance(error, ProcessLost))
                if self.lost is None:
                    raise
                raise ProcessLost(f"{self.lost} {_WHAT_NOW.format(folder=self.folder)}") from None
            finally:
                self._settle(wait=False)
                self._end_others()
                group.close()

    def start(self, meeting_point: str) -> None:
        """Start the others, and watch them."""
        for rank in range(1, self.count):
            environment = os.environ | {VARIABLE: f"{rank} {self.count} {meeting_point}"}
            command = [sys.executable, "-m", "dpal", "run", str(self.folder)]
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and program, and a folder we were given
                command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
            )
            self.others.append(process)
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            for rank, process in enumerate(self.others, start=1):
                if (code := process.poll()) is not None:
                    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
                    self.lost = f"Process {rank + 1} of {self.count} {how}, so all of them were stopped."
                    self._interrupt()
                    return

    def _interrupt(self) -> None:
        # Rank 0 mostly notices by itself, or ends for the same reason as the other process.
        if self._ended.wait(_OWN_END_SECONDS):
            return
        with self._lock:
            if not self._ended.is_set():
                _thread.interrupt_main()
        if not self._ended.wait(_GRACE_SECONDS):
            # It waits for something that never comes. This is as any other crash.
            sys.stderr.write(f"error: {self.lost} {_WHAT_NOW.format(folder=self.folder)}\n")
            sys.stderr.flush()
            self._end_others()
            os._exit(1)

    def _settle(self, *, wait: bool) -> None:
        """Stop watching. A connection may break a moment before the process at its other end is seen to be dead."""
        deadline = time.monotonic() + (_END_SECONDS if wait else 0.0)
        try:
            while self.lost is None and time.monotonic() < deadline:
                time.sleep(_LOOK_SECONDS)
            with self._lock:
                self._ended.set()
        except KeyboardInterrupt:
            # It came from the thread that watches, or has the same meaning.
            self._ended.set()

    def _end_others(self) -> None:
        for process in self.others:
            if process.stdin is not None:
                process.stdin.close()
        deadline = time.monotonic() + _END_SECONDS
        for process in self.others:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


_WHAT_NOW = (
    "Nothing is lost, and nothing is charged twice. If it was killed for want of memory, use fewer processes. Continue "
    "with: dpal run {folder}, with any number of --processes."
)
