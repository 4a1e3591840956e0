"""Python programs in processes of their own that need not import everything first: a process that has done so forks.

Each is a real process with its own exit code, which can be killed. Only what an interpreter does at its very start
is not seen this way: tests of imports begin with a new interpreter.
"""

import io
import multiprocessing
import os
import resource
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from multiprocessing.context import ForkServerProcess
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any

from dpal.cli.commands import COMMANDS

CONTEXT = multiprocessing.get_context("forkserver")
# Modules of tests/support are not among them: of that folder the server of Python 3.11 knows nothing.
CONTEXT.set_forkserver_preload(
    [
        *(f"dpal.cli.{module}" for module, _ in COMMANDS.values()),
        "dpal.campaign.creation",
        "dpal.campaign.runner",
        "dpal.training.learner",
        "dpal.training.process_group",
        "dpal.web.server",
        "cryptography.hazmat.primitives.asymmetric.ed25519",
        "matplotlib.backends.backend_agg",
        "matplotlib.figure",
        "PIL.Image",
        "pyarrow.parquet",
        "scipy.stats",
        "sklearn.datasets",
        "torch._dynamo",
        "transformers.models.bert.modeling_bert",
        "uvicorn",
    ]
)
COMMAND_LINE = "from dpal.cli import run; run()"


def python(
    program: str | Path,
    *words: object,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    largest_file: int | None = None,
    seconds: float = 600,
) -> subprocess.CompletedProcess[str]:
    """Run code, or a file, as `python -c CODE` and `python FILE` do, and wait for its end."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = _process(program, words, cwd, environment, largest_file, out.fileno(), err.fileno())
        process.join(seconds)
        if (code := process.exitcode) is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired([str(program), *map(str, words)], seconds)
        said = [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode() for file in (out, err)]
        return subprocess.CompletedProcess([str(program), *map(str, words)], code, *said)


class Started:
    """A program that was started and runs on, with what subprocess.Popen has for it; `stdout` has stderr too."""

    def __init__(self, program: str | Path, *words: object, environment: Mapping[str, str] | None = None) -> None:
        reader, writer = os.pipe()
        self._process = _process(program, words, None, environment, None, writer, writer)
        os.close(writer)
        self.stdout = io.TextIOWrapper(io.FileIO(reader), encoding="utf-8")

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        self._process.join(timeout)
        if (code := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _process(
    program: str | Path,
    words: tuple[object, ...],
    cwd: Path | None,
    environment: Mapping[str, str] | None,
    largest_file: int | None,
    out: int,
    err: int,
) -> ForkServerProcess:
    given = dict(os.environ if environment is None else environment)
    arguments = (program, [str(word) for word in words], cwd or Path.cwd(), given, largest_file)
    process = CONTEXT.Process(target=_become, args=(*arguments, _Handle(out), _Handle(err)))
    process.start()
    return process


class _Handle:
    """An open file's number, which the other process gets a number of its own for."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> Any:
        return _received, (DupFd(self.number),)


def _received(sent: Any) -> int:
    return sent.detach()


def _become(
    program: str | Path,
    words: list[str],
    cwd: Path,
    environment: Mapping[str, str],
    largest_file: int | None,
    out: int,
    err: int,
) -> None:
    """What an interpreter does at its start, then the program."""
    for number, handle in enumerate((out, err), start=1):
        os.dup2(handle, number)
    for handle in {out, err}:
        os.close(handle)
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), encoding="utf-8", write_through=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    if isinstance(program, Path):
        sys.argv = [str(program), *words]
        sys.path.insert(0, str(program.parent))
        runpy.run_path(str(program), run_name="__main__")
    else:
        sys.argv = ["-c", *words]
        sys.path.insert(0, "")
        exec(program, {"__name__": "__main__"})  # noqa: S102 - the code of a test
