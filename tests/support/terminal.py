"""A person at a terminal: commands run on a pseudo-terminal, and each answer is typed when its question is there."""

import os
import pty
import re
import select
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CTRL_C = "\x03"


@dataclass(frozen=True)
class Session:
    """What was on the screen, without colours, and the exit code."""

    screen: str
    code: int


def at_terminal(
    words: Sequence[object],
    answers: Sequence[tuple[str, str]],
    *,
    cwd: Path,
    path: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
    timeout: float = 180,
) -> Session:
    """Run a dpal command. Each answer is typed after its question has appeared, and every question must appear.

    A question is given by a part of its text. `path` is put before PYTHONPATH.
    """
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(cwd)
        # Whoever runs the tests in the background may have told everything below to ignore it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        # So wide that no question is broken into two lines.
        changes = {"COLUMNS": "500", **(environment or {})}
        changes["PYTHONPATH"] = os.pathsep.join([*map(str, path), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-c", "from dpal.cli import run; run()", *map(str, words)]
        os.execve(sys.executable, command, os.environ | changes)  # noqa: S606
    screen, unread, left = b"", b"", list(answers)
    deadline = time.monotonic() + timeout
    try:
        while time.monotonic() < deadline:
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    new = os.read(terminal, 4096)
                except OSError:
                    break
                screen, unread = screen + new, unread + new
            # The prompt ends with a colon and a space; what is still open is on the last line.
            asked = unread.decode(errors="replace").rpartition("\n")[2]
            if left and asked.endswith(": ") and left[0][0] in asked:
                _, answer = left.pop(0)
                unread = b""
                if answer == CTRL_C:
                    # The prompt appears a moment before the program waits for input, and a signal in between is lost.
                    time.sleep(1)
                os.write(terminal, answer.encode() if answer == CTRL_C else answer.encode() + b"\n")
            elif asked.endswith(": ") and unread:
                wanted = left[0][0] if left else "nothing"
                raise AssertionError(f"asked {asked!r} where {wanted!r} was expected\n{screen.decode()}")
        else:
            raise AssertionError(f"not finished after {timeout:g} s\n{screen.decode()}")
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    finally:
        os.close(terminal)
    _, status = os.waitpid(child, 0)
    text = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", screen.decode(errors="replace")).replace("\r\n", "\n")
    assert not left, f"never asked: {left}\n{text}"
    return Session(screen=text, code=os.waitstatus_to_exitcode(status))
