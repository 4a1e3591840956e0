"""Discrete noise on a grid: the stated curves beside sums over every outcome in 30 digits."""

import math
from fractions import Fraction

import mpmath
import pytest

from dpal.errors import InvalidArgument
from dpal.privacy.accountants import PldAccountant
from dpal.privacy.losses import Direction
from dpal.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Laplace, PureDP
from dpal.privacy.renyi import renyi_curve

mpmath.mp.dps = 30
ORDERS = (1.1, 2.0, 7.3, 40.0)


def laplace_outcomes(epsilon: float, steps: int, shift: int):
    """Probabilities with a record `shift` steps up and with a blank; outcomes beyond both ends are lumped."""
    ratio = mpmath.exp(-mpmath.mpf(epsilon) / steps)

    def at_most(x: int):
        return ratio ** (-x) / (1 + ratio) if x < 0 else 1 - ratio ** (x + 1) / (1 + ratio)

    def pmf(x: int):
        return (1 - ratio) / (1 + ratio) * ratio ** abs(x)

    ends = [(at_most(-shift), at_most(0)), (1 - at_most(-1), 1 - at_most(shift - 1))]
    return ends + [(pmf(x - shift), pmf(x)) for x in range(1, shift)]


def gaussian_outcomes(mechanism: DiscreteGaussian, shift: int):
    variance, part = mpmath.mpf(mechanism.variance), mpmath.mpf(mechanism.participation)
    # At order α the moments gather around α shifts.
    reach = int(14 * math.sqrt(mechanism.variance)) + 2 + math.ceil(max(ORDERS)) * shift
    total = mpmath.fsum(mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * variance)) for x in range(-reach, reach + 1))
    pairs = [
        (
            part * mpmath.exp(-(mpmath.mpf(x - shift) ** 2) / (2 * variance)) / total,
            part * mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * variance)) / total,
        )
        for x in range(-reach, reach + shift + 1)
    ]
    return [*pairs, (1 - part, 1 - part)]


def divergence(pairs, order: float) -> float:
    order = mpmath.mpf(order)
    moment = mpmath.fsum(p**order * q ** (1 - order) for p, q in pairs if p > 0)
    return float(mpmath.log(moment) / (order - 1))


def hockey_stick(pairs, epsilon: float) -> float:
    return float(mpmath.fsum(max(mpmath.mpf(0), p - mpmath.exp(epsilon) * q) for p, q in pairs))


def both_ways(pairs):
    return {Direction.RECORD_FIRST: pairs, Direction.BLANK_FIRST: [(q, p) for p, q in pairs]}


@pytest.mark.parametrize("steps", [1, 2, 7, 64])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 4.0])
def test_discrete_laplace(epsilon: float, steps: int) -> None:
    mechanism = DiscreteLaplace(epsilon=epsilon, grid_steps=steps)
    curve = renyi_curve([(mechanism, 1)], ORDERS)
    for direction, pairs in both_ways(laplace_outcomes(epsilon, steps, steps)).items():
        assert curve == pytest.approx([divergence(pairs, order) for order in ORDERS], rel=1e-10)
        profile = PldAccountant().profile([(mechanism, 1)], direction)
        for at in (-0.5 * epsilon, 0.0, 0.3 * epsilon, 0.99 * epsilon):
            exact = hockey_stick(pairs, at)
            assert exact - 1e-12 <= float(profile.delta(at)[0]) <= exact + 1e-4


def test_smaller_shifts_are_covered() -> None:
    # A record's score may be anything up to the clip: the largest shift must be the worst at every order and ε.
    for shift in range(1, 7):
        pairs = laplace_outcomes(1.5, 7, shift)
        assert all(
            divergence(pairs, order) <= bound
            for order, bound in zip(
                ORDERS, renyi_curve([(DiscreteLaplace(epsilon=1.5, grid_steps=7), 1)], ORDERS), strict=True
            )
        )
        gaussian = DiscreteGaussian(noise_multiplier=0.8, grid_steps=7, participation=0.7)
        for direction, outcomes in both_ways(gaussian_outcomes(gaussian, shift)).items():
            profile = PldAccountant().profile([(gaussian, 1)], direction)
            for at in (-0.4, 0.0, 0.5, 2.0):
                assert hockey_stick(outcomes, at) <= float(profile.delta(at)[0])


def test_continuous_laplace_would_understate_it() -> None:
    # Why there is a mechanism of its own: half the mass and more lies at the largest loss.
    coarse, fine = (DiscreteLaplace(epsilon=1.0, grid_steps=steps) for steps in (1, 1024))
    continuous = renyi_curve([(Laplace(epsilon=1.0), 1)], ORDERS)
    assert (renyi_curve([(coarse, 1)], ORDERS) > 1.005 * continuous).all()
    assert (renyi_curve([(fine, 1)], ORDERS) > continuous).all()
    assert renyi_curve([(fine, 1)], ORDERS) == pytest.approx(continuous, rel=1e-6)
    # With one step it is randomised response.
    assert renyi_curve([(coarse, 1)], ORDERS) == pytest.approx(renyi_curve([(PureDP(epsilon=1.0), 1)], ORDERS))


@pytest.mark.parametrize("participation", [1.0, 0.7])
@pytest.mark.parametrize(("noise", "steps"), [(0.9, 1), (0.9, 5), (3.0, 16)])
def test_discrete_gaussian(noise: float, steps: int, participation: float) -> None:
    mechanism = DiscreteGaussian(noise_multiplier=noise, grid_steps=steps, participation=participation)
    curve = renyi_curve([(mechanism, 1)], ORDERS)
    for direction, pairs in both_ways(gaussian_outcomes(mechanism, steps)).items():
        for order, bound in zip(ORDERS, curve, strict=True):
            # The published bound is for all variances; from one step of deviation on it is nearly attained.
            assert bound * (1 - 1e-3) <= divergence(pairs, order) <= bound * (1 + 1e-12)
        profile = PldAccountant().profile([(mechanism, 1)], direction)
        for at in (-0.5, 0.0, 0.25, 1.0):
            exact = hockey_stick(pairs, at)
            assert exact - 1e-12 <= float(profile.delta(at)[0]) <= exact + 1e-4


def test_the_variance_is_whole_and_never_below_what_was_asked() -> None:
    mechanism = DiscreteGaussian(noise_multiplier=0.3, grid_steps=7)
    assert mechanism.variance == 5
    assert mechanism.variance >= (Fraction(0.3) * 7) ** 2


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (DiscreteLaplace, {"epsilon": 1.0, "grid_steps": 0}, "grid_steps is 0"),
        (DiscreteLaplace, {"epsilon": 1.0, "grid_steps": 70_000}, "grid_steps is 70000"),
        (DiscreteGaussian, {"noise_multiplier": 1.0, "grid_steps": 4, "participation": 0.0}, "participation is 0"),
        (DiscreteGaussian, {"noise_multiplier": 1e6, "grid_steps": 1024}, "noise_multiplier is 1000000"),
    ],
)
def test_bad_fields_are_named(kind, fields, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        kind(**fields)
