"""A history that continues another one is accounted for in one step, as if it were accounted for at once."""

import numpy as np
import pytest
from counted import counted
from histories import step

from dpal.privacy import composition
from dpal.privacy.history import CanonicalHistory, canonical
from dpal.privacy.losses import Direction
from dpal.privacy.mechanisms import Gaussian, Laplace
from dpal.privacy.pld import privacy_profile

STEPS = [(step(0.3 - 0.01 * phase, 3.0 - 0.05 * phase), 40 + phase) for phase in range(12)]
INTERVAL = 1e-3


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize(
    "start", [[], [(Gaussian(noise_multiplier=6.0), 1)], [(Laplace(epsilon=0.2), 3), STEPS[1]]], ids=len
)
def test_the_same_epsilon_step_by_step_and_at_once(
    direction: Direction, start: list[tuple[Gaussian | Laplace, int]]
) -> None:
    history = canonical(start)
    for mechanism, times in STEPS:
        history = history.then(mechanism, times)
        continued = privacy_profile(history, direction, INTERVAL)
        at_once = privacy_profile(CanonicalHistory(history), direction, INTERVAL)
        # Both are upper bounds; they differ by what is charged for rounding at most.
        assert continued.epsilon(1e-5) == pytest.approx(at_once.epsilon(1e-5), abs=1e-8)
        grid = np.linspace(-1, 8, 50)
        charged = 2e-15 + 1e-15 * sum(count for _, count in history)
        assert continued.delta(grid) == pytest.approx(at_once.delta(grid), abs=charged)


@pytest.mark.parametrize("phases", [5, 10, 20])
def test_one_step_more_takes_one_transform_whatever_was_before(phases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    history = canonical([])
    for mechanism, times in STEPS * (1 + phases // len(STEPS)):
        history = history.then(mechanism, times)
    privacy_profile(history.then(step(0.2, 2.0), 30), Direction.RECORD_FIRST, INTERVAL)
    transforms = counted(monkeypatch, composition, "_spectrum")
    privacy_profile(history.then(step(0.21, 2.1), 31), Direction.RECORD_FIRST, INTERVAL)
    assert len(transforms) == 1


def test_a_history_that_continues_none_is_accounted_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    transforms = counted(monkeypatch, composition, "_spectrum")
    privacy_profile(STEPS, Direction.RECORD_FIRST, INTERVAL)
    assert len(transforms) == len(STEPS)
