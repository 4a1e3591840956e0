"""A command of dpal in a child of its own: forked from this process, which has everything imported already."""

import fcntl
import io
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from unittest.mock import patch

from dpal.cli import run as run_command_line

LONGEST_SECONDS = 60.0
# What commands print fits, so nobody has to read while they run.
_PIPE_BYTES = 1 << 20


@dataclass(frozen=True)
class Ended:
    """How a command ended. A negative code is the signal that killed it."""

    words: tuple[str, ...]
    code: int
    output: str
    seconds: float
    hung: bool = False

    @property
    def was_killed(self) -> bool:
        return self.code < 0


@dataclass
class Running:
    """A command under way."""

    words: tuple[str, ...]
    process: int
    # When it began to be a command: until then it is still this program.
    began: float
    # Where it prints: a pipe, since limits on files and disks do not count there.
    pipe: int
    printed: bytearray = field(default_factory=bytearray)

    def kill(self, number: int = signal.SIGKILL) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.process, number)

    def is_running(self) -> bool:
        return os.waitid(os.P_PID, self.process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def output(self) -> str:
        """What it has printed so far."""
        with suppress(BlockingIOError):
            while content := os.read(self.pipe, 1 << 16):
                self.printed += content
        return self.printed.decode("utf-8", errors="replace")

    def wait(self, seconds: float = LONGEST_SECONDS) -> Ended:
        hung = False
        if not _ends_within(self.process, seconds):
            hung = True
            self.kill()
        _, status = os.waitpid(self.process, 0)
        took, output = time.monotonic() - self.began, self.output()
        os.close(self.pipe)
        return Ended(self.words, os.waitstatus_to_exitcode(status), output, took, hung)


def _ends_within(process: int, seconds: float) -> bool:
    handle = os.pidfd_open(process)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(1000 * seconds))
    finally:
        os.close(handle)


def nothing() -> None:
    """A command without a fault."""


def started(words: Sequence[object], *, at_start: Callable[[], None] = nothing) -> Running:
    """Start a command. `at_start` runs in the child before dpal does: it arms the fault."""
    texts = tuple(map(str, words))
    sys.stdout.flush()
    sys.stderr.flush()
    pipe, printing = os.pipe()
    ready, says = os.pipe()
    fcntl.fcntl(printing, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    process = os.fork()
    if process:
        os.close(printing)
        os.close(says)
        os.set_blocking(pipe, False)
        os.read(ready, 1)
        os.close(ready)
        return Running(texts, process, time.monotonic(), pipe)
    code = 70
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for stream in (1, 2):
            os.dup2(printing, stream)
        sys.argv = ["dpal", *texts]
        code = _exit_code(at_start, says)
    finally:
        os._exit(code)


def _exit_code(at_start: Callable[[], None], says: int) -> int:
    """What the interpreter would end with."""
    try:
        at_start()
        os.write(says, b".")
        os.close(says)
        run_command_line()
    except SystemExit as stopped:
        _not_interrupted()
        if isinstance(stopped.code, str):
            os.write(2, stopped.code.encode())
        return stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
    except BaseException as error:
        _not_interrupted()
        if isinstance(error, KeyboardInterrupt) and not _is_in_dpal(error):
            # Before dpal began or after it ended: no business of its own.
            return 130
        os.write(2, traceback.format_exc().encode())
        return 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
    return 0


def _not_interrupted() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _is_in_dpal(error: BaseException) -> bool:
    """Whether it was raised below the command line's entry."""
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    return run_command_line.__code__ in frames


def done(words: Sequence[object], *, at_start: Callable[[], None] = nothing) -> Ended:
    """Run a command to its end."""
    return started(words, at_start=at_start).wait()


def in_this_process(words: Sequence[object]) -> None:
    """Run a command here, so that children which are forked later find in memory what it imported and computed."""
    out = io.StringIO()
    with (
        patch.object(sys, "argv", ["dpal", *map(str, words)]),
        redirect_stdout(out),
        redirect_stderr(out),
        suppress(SystemExit),
    ):
        run_command_line()
        return
    if "rror: " in out.getvalue():
        raise RuntimeError(f"{words}:\n{out.getvalue()}")
