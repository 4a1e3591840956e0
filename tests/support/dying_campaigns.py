"""Campaigns that die at a named point, within one process."""

from pathlib import Path

import pytest
from small_campaigns import linear_opened

from dpal.campaign import fault_points


class Died(BaseException):
    """The process dies here, as far as one process can show it."""


def died_at(folder: Path, wanted: str, hits: int = 1) -> None:
    """Run until a point is reached so many times, and no further."""
    original, seen = fault_points.reached, 0

    def reached(point: str) -> None:
        nonlocal seen
        seen += point == wanted
        if point == wanted and seen == hits:
            raise Died

    fault_points.reached = reached
    try:
        with pytest.raises(Died):
            linear_opened(folder).run(go_on=True)
    finally:
        fault_points.reached = original
