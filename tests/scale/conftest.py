"""Tests that need Ray or an S3 server say so where these are missing: make test-scale installs both."""

from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def ray_here() -> Generator[None]:
    """Ray, started once for all tests."""
    if find_spec("ray") is None:
        pytest.skip("needs Ray (make test-scale)")
    yield
    import ray

    ray.shutdown()


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "scores"
