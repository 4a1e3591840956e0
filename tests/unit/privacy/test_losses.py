"""Loss distributions of single mechanisms by hand, and rounding that only goes one way."""

import math

import numpy as np
import pytest

from dpal.errors import InvalidArgument
from dpal.privacy.losses import Direction, LossDistribution, loss_cells, loss_range
from dpal.privacy.mechanisms import BernoulliSelection, Gaussian, Laplace, Mechanism, PoissonSampledGaussian, PureDP

EVERY = [
    Gaussian(noise_multiplier=1.0),
    PoissonSampledGaussian(sampling_probability=0.1, noise_multiplier=1.0),
    Laplace(epsilon=1.0),
    PureDP(epsilon=1.0),
    BernoulliSelection(probability_high=0.7, probability_low=0.2),
]


def delta(losses: LossDistribution, epsilon: float) -> float:
    return losses.infinite + float(np.maximum(0, -np.expm1(epsilon - losses.losses)) @ losses.probabilities)


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("mechanism", EVERY, ids=lambda mechanism: mechanism.name)
def test_probabilities_add_up(mechanism: Mechanism, direction: Direction) -> None:
    losses = loss_cells(mechanism, 1e-3).distribution(direction)
    assert losses.probabilities.min() >= 0
    assert losses.probabilities.sum() + losses.infinite == pytest.approx(1, abs=1e-12)
    low, high = loss_range(mechanism)
    low, high = (low, high) if direction is Direction.RECORD_FIRST else (-high, -low)
    assert losses.losses[0] >= low - 2e-3 and losses.losses[-1] <= high + 2e-3


@pytest.mark.parametrize("interval", [1e-4, 0.05, 0.3])
def test_deltas_are_never_below_the_true_ones(interval: float) -> None:
    """Randomised response, Laplace noise and a coin have a δ(ε) that can be written down."""
    for epsilon in (0.0, 0.25, 0.5, 0.99):
        grown = math.exp(epsilon)
        truth = 1 / (1 + math.exp(-1))
        by_hand = {
            PureDP(epsilon=1.0): truth - grown * (1 - truth),
            Laplace(epsilon=1.0): -math.expm1((epsilon - 1) / 2),
            EVERY[-1]: 0.7 - grown * 0.2,
        }
        for mechanism, true in by_hand.items():
            found = delta(loss_cells(mechanism, interval).distribution(Direction.RECORD_FIRST), epsilon)
            assert found >= true - 1e-12
            assert found <= true + interval


def test_a_finer_grid_is_never_worse() -> None:
    for mechanism in EVERY:
        for direction in Direction:
            found = [delta(loss_cells(mechanism, interval).distribution(direction), 0.5) for interval in (0.2, 0.1)]
            assert found[1] <= found[0] + 1e-12


def test_the_coin_differs_by_direction() -> None:
    """Taken more often with the record: 0.7 − 0.2·e^ε one way, and 0.8 − 0.3·e^ε the other, at ε = 0.5."""
    cells = loss_cells(EVERY[-1], 1e-5)
    for direction, true in ((Direction.RECORD_FIRST, 0.7 - 0.2 * math.exp(0.5)), (Direction.BLANK_FIRST, None)):
        true = 0.8 - 0.3 * math.exp(0.5) if true is None else true
        assert delta(cells.distribution(direction), 0.5) == pytest.approx(true, abs=1e-4)


def test_a_mechanism_without_a_distribution_is_refused() -> None:
    class Unknown(Mechanism):
        name = "unknown"

    for call in (loss_range, lambda mechanism: loss_cells(mechanism, 1e-3)):
        with pytest.raises(InvalidArgument, match="privacy-loss distribution"):
            call(Unknown())
