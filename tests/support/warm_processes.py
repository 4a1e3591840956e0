"""Python programs in processes of their own that need not import everything first: a process that has done so forks.

Each is a real process with its own exit code, which can be killed. Only what an interpreter does at its very start
is not seen this way: tests of imports and of signals during the start begin with a new interpreter.
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
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
# Modules of tests/support are not among them: of that folder the server of Python 3.11 knows nothing.
CONTEXT.set_forkserver_preload(
    [
        "dpal.cli",
        "dpal.campaign.creation",
        "dpal.campaign.runner",
        "dpal.training.learner",
        "dpal.training.process_group",
        "PIL.Image",
        "cryptography.hazmat.primitives.asymmetric.ed25519",
        "matplotlib.figure",
        "pyarrow",
        "scipy.stats",
        "sklearn.datasets",
        "torch.optim",
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
    with tempfile.TemporaryDirectory() as folder:
        streams = Path(folder) / "out", Path(folder) / "err"
        given = dict(os.environ if environment is None else environment)
        everything = (program, [str(word) for word in words], cwd or Path.cwd(), given, largest_file, streams)
        process = CONTEXT.Process(target=_become, args=everything)
        process.start()
        process.join(seconds)
        if process.is_alive():
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired([str(program), *map(str, words)], seconds)
        out, err = (file.read_text(encoding="utf-8") if file.exists() else "" for file in streams)
        code = process.exitcode
        assert code is not None
        return subprocess.CompletedProcess([str(program), *map(str, words)], code, out, err)


def _become(
    program: str | Path,
    words: list[str],
    cwd: Path,
    environment: Mapping[str, str],
    largest_file: int | None,
    streams: tuple[Path, Path],
) -> None:
    for number, file in enumerate(streams, start=1):
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        os.dup2(handle, number)
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
    sys.argv = [str(program) if isinstance(program, Path) else "-c", *words]
    if isinstance(program, Path):
        sys.path.insert(0, str(program.parent))
        runpy.run_path(str(program), run_name="__main__")
    else:
        sys.path.insert(0, "")
        exec(program, {"__name__": "__main__"})  # noqa: S102 - the code of a test
