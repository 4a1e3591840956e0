"""The command line as a person runs it: in its own process."""

import contextlib
import io
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from warm_processes import COMMAND_LINE, python

from dpal.cli import run


def dpal(
    *words: object, cwd: Path | None = None, without: str | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command, if asked without a package, as if that were not installed."""
    if without is None:
        return python(COMMAND_LINE, *words, cwd=cwd, environment=environment)
    code = f"import sys; sys.modules[{without!r}] = None; {COMMAND_LINE}"
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=300)


def checked(
    *words: object, cwd: Path, codes: tuple[int, ...] = (0,), environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command; its exit code must be one of these, and it must not end with a traceback."""
    done = dpal(*words, cwd=cwd, environment=environment)
    assert done.returncode in codes, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done


@dataclass(frozen=True)
class Done:
    """A command that ran in this process."""

    returncode: int
    stdout: str
    stderr: str


def dpal_here(*words: object, cwd: Path, codes: tuple[int, ...] = (0,)) -> Done:
    """Run a command in this process, which saves seconds; its exit code must be one of these."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(cwd),
        patch.object(sys, "argv", ["dpal", *map(str, words)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            run()
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    assert code in codes, f"{words}: {code}\n{out.getvalue()}\n{err.getvalue()}"
    return Done(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())
