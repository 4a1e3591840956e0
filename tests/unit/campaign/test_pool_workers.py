import atexit
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dpal.campaign.pool_workers import _started, pool_workers
from dpal.errors import MissingPackage


class Adder:
    def __init__(self, job: int) -> None:
        self.job = job

    def add(self, number: int) -> int:
        return self.job + number


def test_without_workers_this_process_does_it_when_results_are_taken() -> None:
    started: list[int] = []

    def tasks() -> Any:
        for number in range(3):
            started.append(number)
            yield (number,)

    with pool_workers(Adder, 10, 0) as at_work:
        results = at_work.each("add", tasks())
        assert next(results) == 10 and started == [0]
        assert list(results) == [11, 12]


def test_ray_is_needed_only_for_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pool_workers(Adder, 10, 0) as at_work:
        assert list(at_work.each("add", [(1,)])) == [11]
    with pytest.raises((MissingPackage, ModuleNotFoundError), match="ray"), pool_workers(Adder, 10, 2):
        pass


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a stand-in for Ray is started with."""
    given: list[dict[str, Any]] = []
    ray = SimpleNamespace(
        is_initialized=lambda: False, init=lambda **options: given.append(options), shutdown=lambda: None
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    for name in ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "RAY_USAGE_STATS_ENABLED"):
        # Set first, so that what the code sets is undone.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return given


def test_ray_on_this_machine_is_closed_to_the_network_and_to_other_users(
    starts: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_the_end: list[Any] = []
    monkeypatch.setattr(atexit, "register", at_the_end.append)
    _started(2)
    assert os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0" and os.environ["RAY_AUTH_MODE"] == "token"
    # What does not fit in memory is written there: records, scores, keys.
    assert starts[0]["address"] == "local"
    place = Path(starts[0]["_temp_dir"])
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700 and len(str(place)) < 32
    at_the_end[0]()
    assert not place.parent.exists()


def test_a_cluster_is_joined_as_it_is(starts: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "ray://10.0.0.1:10001")
    _started(2)
    assert starts == [{"log_to_driver": False, "configure_logging": False}]
    assert "RAY_AUTH_MODE" not in os.environ and "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER" not in os.environ
