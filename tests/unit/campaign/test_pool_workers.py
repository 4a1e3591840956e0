from typing import Any

import pytest

from dpal.campaign.pool_workers import pool_workers
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
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    with pool_workers(Adder, 10, 0) as at_work:
        assert list(at_work.each("add", [(1,)])) == [11]
    with pytest.raises((MissingPackage, ModuleNotFoundError), match="ray"), pool_workers(Adder, 10, 2):
        pass
