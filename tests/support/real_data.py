"""Where real data lies: beside the repository, or where $DPAL_REAL_DATA says. Tests that need it skip without it."""

import os
from pathlib import Path

import pytest

_DEFAULT = Path(__file__).parents[3] / "shared" / "data"


def real_file(name: str) -> Path:
    """The file, or a skip with the reason."""
    folder = Path(os.environ.get("DPAL_REAL_DATA", _DEFAULT))
    path = folder / name
    if not path.exists():
        pytest.skip(f"needs the real data {name} in {folder} (set DPAL_REAL_DATA)")
    return path
