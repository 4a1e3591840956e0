"""What can happen to a command: each fault is armed in the child or done to it, and says how the command may end."""

import errno
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import toy_parts
from commands import LONGEST_SECONDS, Ended, Running, nothing
from workspace import Workspace, make_read_only

from dpal.campaign import fault_points

KILLED, TERMINATED = -signal.SIGKILL, -signal.SIGTERM
# Done, wrong input or a full disk, waiting, busy, at chance.
NORMAL = (0, 3, 4, 6)
REFUSED = (*NORMAL, 2)
INTERRUPTED = 130
# Where C code cannot go on without memory, it ends the process.
ABORTED = (-signal.SIGABRT, -signal.SIGSEGV, KILLED)
# Where a thread could not begin for want of memory, Python 3.11 waits for it for ever.
PATIENCE = 5.0
MEMORY = (*REFUSED, 1, *ABORTED)

# The points that a command may reach, by its first word.
POINTS = {
    "init": ("create.", "store.", "seal."),
    "run": ("seal.", "store.", "select.", "labels.", "train.", "evaluate.", "finish."),
    "import": ("import.", "store."),
    "give-up": ("give-up.", "store.", "seal."),
    "withdraw": ("store.", "seal."),
    "serve": ("inbox.",),
    "experts": ("inbox.",),
}
OFTEN = ("train.step", "store.in-transaction", "store.committed", "seal.written", "seal.overwritten")
OFTEN += ("inbox.in-transaction", "inbox.committed", "train.snapshot-drafted", "train.snapshot-written")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault: what kind, drawn how, and what it does."""

    kind: str
    detail: str = ""
    # In the child, before dpal starts.
    at_start: Callable[[], None] = nothing
    # Around it: in this process.
    before: Callable[[], None] = nothing
    during: Callable[[Running], None] = lambda running: None
    after: Callable[[], None] = nothing
    # Exit codes with which the command may end.
    codes: tuple[int, ...] = REFUSED
    # How long the command may take, and whether it has so little memory that it may take for ever.
    seconds: float = LONGEST_SECONDS
    without_memory: bool = False


@dataclass(frozen=True)
class Place:
    """Where a command works, and how long it takes when nothing happens."""

    folder: Path
    workspace: Workspace
    seconds: float


def name_of(words: tuple[object, ...]) -> str:
    """What a command is called in `POINTS`."""
    return str(words[1] if words[0] == "labels" else words[0])


def killed_at_a_point(chance: random.Random, place: Place, command: str) -> Fault:
    points = [point for point in fault_points.POINTS if point.startswith(POINTS[command])]
    point = chance.choice(points)
    # Mostly the first time: a command that meets no fault finishes the campaign, and there is no more to disturb.
    number = chance.choice([1, 1, 1, 2, 2, 3, 5, 9] if point in OFTEN else [1, 1, 1, 2])

    def arm() -> None:
        os.environ[fault_points.VARIABLE] = f"{point}:{number}"

    return Fault(kind="killed at a named point", detail=f"{point}:{number}", at_start=arm, codes=(KILLED,))


def killed_at_an_instant(chance: random.Random, place: Place, command: str) -> Fault:
    return _signalled(chance, place, signal.SIGKILL, "killed at a random instant", (KILLED,))


def terminated(chance: random.Random, place: Place, command: str) -> Fault:
    return _signalled(chance, place, signal.SIGTERM, "SIGTERM", (TERMINATED,))


def interrupted(chance: random.Random, place: Place, command: str) -> Fault:
    return _signalled(chance, place, signal.SIGINT, "SIGINT (Ctrl-C)", (INTERRUPTED,))


def _signalled(chance: random.Random, place: Place, number: int, kind: str, codes: tuple[int, ...]) -> Fault:
    seconds = chance.uniform(0.0, place.seconds)

    def strike(running: Running) -> None:
        deadline = running.began + seconds
        while time.monotonic() < deadline and running.is_running():
            time.sleep(0.001)
        running.kill(number)

    return Fault(kind=kind, detail=f"after {seconds:.4f} s", during=strike, codes=codes)


class _Counted:
    """Counts what a command does to files, and does something at the Nth time."""

    def __init__(self, folder: Path, number: int, happens: Callable[[], None]) -> None:
        self.folder, self.left, self.happens = str(folder), number, happens

    def arm(self) -> None:
        sys.addaudithook(self.heard)
        true = os.fsync

        def fsync(handle: int) -> None:
            self.count()
            true(handle)

        os.fsync = fsync

    def heard(self, event: str, given: tuple[object, ...]) -> None:
        if event in _EVENTS and given and str(given[0]).removeprefix("file://").startswith(self.folder):
            self.count()

    def count(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.happens()


_EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.listdir", "os.scandir", "sqlite3.connect")


def killed_at_a_file(chance: random.Random, place: Place, command: str) -> Fault:
    number = chance.randint(1, 60 if command == "run" else 30)

    def happens() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    counted = _Counted(place.folder.parent, number, happens)
    detail = f"at file operation {number}"
    return Fault(kind="killed at a file operation", detail=detail, at_start=counted.arm, codes=(KILLED,))


def failing_disk(chance: random.Random, place: Place, command: str) -> Fault:
    number = chance.randint(1, 60 if command == "run" else 30)

    def happens() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    counted = _Counted(place.folder.parent, number, happens)
    return Fault(kind="input/output error", detail=f"at file operation {number}", at_start=counted.arm)


def full_disk(chance: random.Random, place: Place, command: str) -> Fault:
    if not place.workspace.is_mounted:
        return large_file(chance, place, command)
    room = chance.choice([0, chance.randint(0, 16), chance.randint(0, 60)]) * 4096
    return Fault(
        kind="disk full",
        detail=f"{room:,} bytes left",
        before=lambda: place.workspace.fill(room),
        after=place.workspace.free,
    )


def large_file(chance: random.Random, place: Place, command: str) -> Fault:
    limit = chance.choice([chance.randint(0, 2000), chance.randint(0, 70_000)])

    def arm() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return Fault(kind="file too large", detail=f"{limit:,} bytes", at_start=arm)


def read_only(chance: random.Random, place: Place, command: str) -> Fault:
    folder = place.folder if place.folder.exists() and chance.random() < 0.7 else place.folder.parent
    if place.workspace.is_mounted:
        return Fault(kind="read-only", detail=folder.name, at_start=lambda: make_read_only(folder))
    paths = [folder, *folder.rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}

    def close() -> None:
        for path in reversed(paths):
            path.chmod(modes[path] & ~0o222)

    def open_again() -> None:
        for path in paths:
            with suppress(FileNotFoundError):
                path.chmod(modes[path])

    return Fault(kind="read-only", detail=folder.name, before=close, after=open_again)


def another_user(chance: random.Random, place: Place, command: str) -> Fault:
    """Somebody who may read some of it, or nothing."""
    modes = {path: path.stat().st_mode for path in [place.folder, *place.folder.rglob("*")]}
    opened = chance.random() < 0.5

    def open_folders() -> None:
        for path in modes:
            if path.is_dir() and opened:
                path.chmod(0o755)

    def close_again() -> None:
        for path, mode in modes.items():
            with suppress(FileNotFoundError):
                path.chmod(mode)

    def become() -> None:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    detail = "folders are readable" if opened else "nothing is readable"
    return Fault(kind="another user", detail=detail, before=open_folders, at_start=become, after=close_again)


def clock_jump(chance: random.Random, place: Place, command: str) -> Fault:
    days = chance.choice([-20000, -365, -1, -0.01, 0.01, 1, 400, 20000]) * chance.random()
    calls, by = chance.randint(0, 6), timedelta(days=days)
    stamp = time.time() + by.total_seconds() if chance.random() < 0.5 else None

    def touch() -> None:
        # As after a restored backup, or on a share with a clock of its own.
        for path in place.folder.rglob("*") if stamp is not None else ():
            os.utime(path, (stamp, stamp))

    return Fault(
        kind="clock jump",
        detail=f"{days:.3f} days after {calls} looks",
        before=touch,
        at_start=lambda: _jump(by, calls),
        codes=NORMAL,
    )


def _jump(by: timedelta, calls: int) -> None:
    true, left = time.time, [calls]

    def now() -> float:
        left[0] -= 1
        return true() + (by.total_seconds() if left[0] < 0 else 0.0)

    class Jumping(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.fromtimestamp(now(), tz)

    formatted = time.strftime
    time.time = now
    time.strftime = lambda form, at=None: formatted(form, time.localtime(now()) if at is None else at)
    for name, module in list(sys.modules.items()):
        if name.startswith("dpal") and getattr(module, "datetime", None) is datetime:
            module.datetime = Jumping  # type: ignore[attr-defined]


def out_of_memory(chance: random.Random, place: Place, command: str) -> Fault:
    room = chance.choice([0, chance.randint(0, 1 << 20), chance.randint(0, 1 << 24)])

    def arm() -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + room
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    return Fault(
        kind="out of memory",
        detail=f"{room:,} bytes left",
        at_start=arm,
        codes=MEMORY,
        seconds=PATIENCE,
        without_memory=True,
    )


def failed_allocation(chance: random.Random, place: Place, command: str) -> Fault:
    """One of Python's own requests for memory fails, and then many do."""
    first = int(10 ** chance.uniform(2, 5.5 if command == "run" else 4.8))
    many = chance.choice([1, 3, 100, 10_000])

    def arm() -> None:
        with suppress(ImportError):
            import _testcapi  # type: ignore[import-not-found]

            _testcapi.set_nomemory(first, first + many)

    detail = f"allocations {first:,} and {many:,} after it"
    return Fault(
        kind="allocation fails", detail=detail, at_start=arm, codes=MEMORY, seconds=PATIENCE, without_memory=True
    )


def source_mishap(chance: random.Random, place: Place, command: str) -> Fault:
    mishap, number = chance.choice([*toy_parts.MISHAPS, "hangs"]), chance.randint(0, 5)

    def arm() -> None:
        os.environ[toy_parts.VARIABLE] = f"{mishap}:{number}"

    def wait(running: Running) -> None:
        if mishap == "hangs":
            time.sleep(1.2 * place.seconds)
            running.kill()

    codes = {"dies": (KILLED,), "hangs": (KILLED,), "stops": (INTERRUPTED,), "out-of-memory": (1,)}.get(mishap, REFUSED)
    kind = f"label source {mishap}"
    return Fault(kind=kind, detail=f"after {number} answers", at_start=arm, during=wait, codes=codes)


Maker = Callable[[random.Random, Place, str], Fault]
# How often each is drawn, relative to the others.
MAKERS: dict[Maker, int] = {
    killed_at_a_point: 8,
    killed_at_an_instant: 5,
    killed_at_a_file: 5,
    failing_disk: 4,
    full_disk: 4,
    large_file: 2,
    read_only: 2,
    another_user: 1,
    clock_jump: 1,
    out_of_memory: 2,
    failed_allocation: 2,
    terminated: 1,
    interrupted: 3,
}


def drawn(chance: random.Random, place: Place, words: tuple[object, ...], *, source: bool) -> Fault:
    """A fault for this command."""
    command = name_of(words)
    makers = dict(MAKERS)
    if command not in POINTS:
        del makers[killed_at_a_point]
    if os.geteuid() != 0 or not place.workspace.is_mounted or not place.folder.exists():
        del makers[another_user]
    if source and command == "run":
        makers[source_mishap] = 8
    return chance.choices(list(makers), list(makers.values()))[0](chance, place, command)


def happened(fault: Fault, ended: Ended) -> bool:
    """Whether the command met the fault, as far as can be told. A command that ended before is not counted."""
    if fault.kind.startswith(("killed", "SIG")):
        return ended.code in fault.codes
    if fault.kind in ("input/output error", "out of memory", "allocation fails", "file too large", "disk full"):
        return ended.code not in NORMAL
    return True
