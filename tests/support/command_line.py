"""The command line as a person runs it: in its own process."""

import subprocess
import sys
from pathlib import Path


def dpal(*words: object, cwd: Path | None = None, without: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command, if asked without a package, as if that were not installed."""
    blocked = "" if without is None else f"import sys; sys.modules[{without!r}] = None; "
    code = f"{blocked}from dpal.cli import run; run()"
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)
