"""Every fast formula beside a slow integral in 30 digits."""

import math
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest

from dpal.privacy.accountants import PldAccountant, RdpAccountant
from dpal.privacy.losses import Direction, loss_cells
from dpal.privacy.mechanisms import (
    BernoulliSelection,
    Exponential,
    Gaussian,
    Laplace,
    Mechanism,
    PoissonSampledGaussian,
    PureDP,
)
from dpal.privacy.renyi import renyi_curve
from dpal.privacy.sampled_gaussian import log_moments

mpmath.mp.dps = 30


def sampled_gaussian_log_moment(q: float, noise: float, order: float):
    q, noise, order = (mpmath.mpf(value) for value in (q, noise, order))

    def integrand(z):
        return mpmath.npdf(z, 0, noise) * (1 - q + q * mpmath.exp((2 * z - 1) / (2 * noise**2))) ** order

    ends = sorted(
        {-40 * noise, -8 * noise, mpmath.mpf(0), mpmath.mpf(1), order / 2, order, order + 8 * noise, order + 40 * noise}
    )
    return mpmath.log(mpmath.quad(integrand, ends))


@pytest.mark.parametrize("q", [1e-6, 1e-3, 0.01, 0.2, 0.7, 0.99])
def test_sampled_gaussian(q: float) -> None:
    for noise, order in product((0.1, 0.3, 0.7, 1.0, 4.0, 50.0), (1.1, 1.9, 2.0, 3.4, 10.9, 12.0, 63.0)):
        fast = log_moments(np.array([q]), np.array([noise]), np.array([order]))[0, 0]
        assert fast == pytest.approx(float(sampled_gaussian_log_moment(q, noise, order)), rel=1e-10), (noise, order)


def test_sampled_gaussian_to_order_512() -> None:
    fast = log_moments(np.array([0.05]), np.array([5.0]), np.array([256.0, 512.0]))[0]
    for value, order in zip(fast, (256, 512), strict=True):
        terms = [
            mpmath.binomial(order, i)
            * mpmath.mpf(0.05) ** i
            * mpmath.mpf(1 - 0.05) ** (order - i)
            * mpmath.exp(mpmath.mpf(i * i - i) / 50)
            for i in range(order + 1)
        ]
        assert value == pytest.approx(float(mpmath.log(mpmath.fsum(terms))), rel=1e-12)


def test_many_mechanisms_at_once_equal_one_at_a_time() -> None:
    q, noise = np.array([0.3, 0.001, 0.9, 0.02]), np.array([0.15, 4.0, 1.0, 0.05])
    orders = np.array([1.5, 2.0, 7.7, 64.0])
    together = log_moments(q, noise, orders)
    for row in range(4):
        alone = log_moments(q[row : row + 1], noise[row : row + 1], orders)
        assert together[row] == pytest.approx(alone[0], rel=1e-12)


def test_chords_at_little_noise_are_above_the_curve_and_close() -> None:
    for q, order in product((0.01, 0.5), (1.3, 2.5, 7.7)):
        chord = log_moments(np.array([q]), np.array([0.09]), np.array([order]))[0, 0]
        exact = float(sampled_gaussian_log_moment(q, 0.09, order))
        assert exact <= chord < 2 * exact


def test_the_other_direction_is_never_above() -> None:
    # The curve is stated for record-first; blank-first must be below it (arXiv:1908.10530 Sec. 3).
    for q, noise, order in product((0.01, 0.3), (0.7, 3.0), (1.5, 4.0, 20.0)):
        curve = renyi_curve([(PoissonSampledGaussian(sampling_probability=q, noise_multiplier=noise), 1)], (order,))[0]
        other = mpmath.quad(
            lambda z, q=q, noise=noise, order=order: (
                mpmath.npdf(z, 0, noise)
                * (1 - q + q * mpmath.exp((2 * z - 1) / (2 * mpmath.mpf(noise) ** 2))) ** (1 - order)
            ),
            [-60 * noise, -8 * noise, 0, 1, 8 * noise, 60 * noise],
        )
        assert float(mpmath.log(other)) / (order - 1) <= curve


def renyi_integral(mechanism: Mechanism, order: float) -> float:
    """The divergence from the mechanism's definition, not from its formula."""
    order = mpmath.mpf(order)
    match mechanism:
        case Gaussian(noise_multiplier=noise):
            p, q = (lambda z: mpmath.npdf(z, 1, noise)), (lambda z: mpmath.npdf(z, 0, noise))
            ends = [-30 * noise, -8 * noise, 0, 1, order, order + 8 * noise, order + 30 * noise]
            moment = mpmath.quad(lambda z: p(z) ** order * q(z) ** (1 - order), ends)
        case Laplace(epsilon=size):
            p, q = (lambda z: mpmath.exp(-abs(z)) / 2), (lambda z: mpmath.exp(-abs(z - size)) / 2)
            moment = mpmath.quad(lambda z: p(z) ** order * q(z) ** (1 - order), [-mpmath.inf, 0, size, mpmath.inf])
        case PureDP(epsilon=size):
            truth = 1 / (1 + mpmath.exp(-mpmath.mpf(size)))
            moment = truth**order * (1 - truth) ** (1 - order) + (1 - truth) ** order * truth ** (1 - order)
        case BernoulliSelection(probability_high=a, probability_low=b):
            a, b = mpmath.mpf(a), mpmath.mpf(b)
            moment = max(
                x**order * y ** (1 - order) + (1 - x) ** order * (1 - y) ** (1 - order) for x, y in ((a, b), (b, a))
            )
        case _:
            raise AssertionError(mechanism)
    return float(mpmath.log(moment) / (order - 1))


@pytest.mark.parametrize("order", [1.1, 2.0, 7.3, 40.0])
@pytest.mark.parametrize(
    "mechanism",
    [
        *(Gaussian(noise_multiplier=noise) for noise in (0.5, 3.0)),
        *(kind(epsilon=size) for kind in (Laplace, PureDP) for size in (0.05, 0.5, 4.0)),
        *(BernoulliSelection(probability_high=a, probability_low=b) for a, b in ((0.3, 0.1), (0.02, 0.4), (0.9, 0.5))),
    ],
    ids=repr,
)
def test_renyi_curves(mechanism: Mechanism, order: float) -> None:
    assert renyi_curve([(mechanism, 1)], (order,))[0] == pytest.approx(renyi_integral(mechanism, order), rel=1e-10)


@pytest.mark.parametrize("size", [0.1, 1.0, 3.0])
def test_the_exponential_curve_covers_every_mechanism_of_its_range(size: float) -> None:
    # Two outcomes with log ratios t and t − ε span the mechanisms of bounded range ε.
    for order in (1.1, 2.0, 5.5, 30.0):
        bound = renyi_curve([(Exponential(epsilon=size), 1)], (order,))[0]
        for t in np.linspace(0.01 * size, 0.99 * size, 25):
            q = -math.expm1(t - size) / (math.exp(t) * -math.expm1(-size))
            pair = BernoulliSelection(probability_high=math.exp(t) * q, probability_low=q)
            assert renyi_integral(pair, order) <= bound * (1 + 1e-12)


def hockey_stick(mechanism: Mechanism, epsilon: float, direction: Direction) -> float:
    """∫ max(0, P − exp(ε)·Q) from the definition of the mechanism."""
    growth = mpmath.exp(mpmath.mpf(epsilon))
    match mechanism:
        case PoissonSampledGaussian(sampling_probability=rate, noise_multiplier=noise):

            def record(z):
                return (1 - rate) * mpmath.npdf(z, 0, noise) + rate * mpmath.npdf(z, 1, noise)

            def blank(z):
                return mpmath.npdf(z, 0, noise)

            ends = [-25 * noise, 0, 1, 25 * noise + 1]
        case Laplace(epsilon=size):

            def record(z):
                return mpmath.exp(-abs(z)) / 2

            def blank(z):
                return mpmath.exp(-abs(z - size)) / 2

            ends = [-80, 0, size, 80]
        case _:
            raise AssertionError(mechanism)
    first, second = (record, blank) if direction is Direction.RECORD_FIRST else (blank, record)
    # Both likelihood ratios are monotone, so the positive part ends at one crossing, found by bisection.
    crossing = _crossing(lambda z: first(z) - growth * second(z), ends[0], ends[-1])
    cuts = sorted({mpmath.mpf(end) for end in ends} | {crossing})
    total = sum(
        mpmath.quad(lambda z: first(z) - growth * second(z), [a, b])
        for a, b in pairwise(cuts)
        if first((a + b) / 2) > growth * second((a + b) / 2)
    )
    return float(total)


def _crossing(function, low, high):
    low, high = mpmath.mpf(low), mpmath.mpf(high)
    positive_low = function(low) > 0
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (middle, high) if (function(middle) > 0) == positive_low else (low, middle)
    return low


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize(
    "mechanism",
    [
        *(
            PoissonSampledGaussian(sampling_probability=q, noise_multiplier=noise)
            for q, noise in ((0.01, 1.0), (0.3, 0.6), (0.9, 3.0))
        ),
        Laplace(epsilon=0.7),
        Laplace(epsilon=2.0),
    ],
    ids=repr,
)
def test_the_loss_distribution_of_one_step(mechanism: Mechanism, direction: Direction) -> None:
    profile = PldAccountant().profile([(mechanism, 1)], direction)
    for epsilon in (-0.5, 0.0, 0.05, 0.31234, 1.0, 1.9):
        exact = hockey_stick(mechanism, epsilon, direction)
        rounded = float(profile.delta(epsilon)[0])
        assert exact - 1e-13 <= rounded <= exact * (1 + 1e-6) + 1e-8


@pytest.mark.parametrize("size", [0.1, 0.9, 4.0])
def test_the_loss_distribution_of_the_exponential_mechanism(size: float) -> None:
    # The least curve above all mechanisms of bounded range: the supremum over t, here by brute force.
    t = np.linspace(0, size, 20_001)
    q = -np.expm1(t - size) / (np.exp(t) * -math.expm1(-size))
    for direction in Direction:
        profile = PldAccountant().profile([(Exponential(epsilon=size), 1)], direction)
        for epsilon in np.linspace(-0.9 * size, 0.99 * size, 9):
            taken = np.maximum(0, np.exp(t) * q - math.exp(epsilon) * q)
            passed = np.maximum(0, (1 - np.exp(t) * q) - math.exp(epsilon) * (1 - q))
            exact = float((taken + passed).max())
            assert exact - 1e-9 <= float(profile.delta(epsilon)[0]) <= exact + 1e-7


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize(
    ("mechanism", "outcomes"),
    [
        (PureDP(epsilon=0.8), None),
        (PureDP(epsilon=60.0), None),
        (BernoulliSelection(probability_high=0.3, probability_low=0.05), ((0.3, 0.05), (0.7, 0.95))),
        (BernoulliSelection(probability_high=0.05, probability_low=0.3), ((0.05, 0.3), (0.95, 0.7))),
    ],
    ids=repr,
)
def test_the_loss_distribution_of_coins(mechanism: Mechanism, outcomes, direction: Direction) -> None:
    if outcomes is None:
        truth, lie = 1 / (1 + math.exp(-mechanism.epsilon)), 1 / (1 + math.exp(mechanism.epsilon))
        outcomes = ((truth, lie), (lie, truth))
    profile = PldAccountant().profile([(mechanism, 1)], direction)
    for epsilon in (-1.0, 0.0, 0.2, 0.79, 1.5):
        pairs = outcomes if direction is Direction.RECORD_FIRST else [(q, p) for p, q in outcomes]
        exact = sum(max(0.0, p - math.exp(epsilon) * q) for p, q in pairs)
        assert exact - 1e-12 <= float(profile.delta(epsilon)[0]) <= exact + 1e-4


def test_cells_keep_both_probabilities() -> None:
    mechanism = PoissonSampledGaussian(sampling_probability=0.2, noise_multiplier=1.3)
    for direction in Direction:
        rounded = loss_cells(mechanism, 1e-4).distribution(direction)
        assert rounded.probabilities.sum() == pytest.approx(1, abs=1e-14)
        assert (rounded.probabilities * np.exp(-rounded.losses)).sum() == pytest.approx(1, abs=1e-12)
        assert rounded.infinite < 1e-20


def test_composed_gaussians_meet_the_closed_form() -> None:
    # k Gaussians are one with noise σ/√k: δ(ε) = Φ(μ/2 − ε/μ) − exp(ε)·Φ(−μ/2 − ε/μ), μ = √k/σ. Sampled with
    # probability 1 − 1e-12 they cannot take the short cut through one Gaussian.
    history = [(PoissonSampledGaussian(sampling_probability=1 - 1e-12, noise_multiplier=20.0), 400)]
    for epsilon in (0.0, 0.5, 2.0, 4.0):
        exact = float(mpmath.ncdf(0.5 - epsilon) - mpmath.exp(epsilon) * mpmath.ncdf(-0.5 - epsilon))
        assert exact <= PldAccountant().delta(history, epsilon) <= exact * (1 + 1e-3)


@pytest.mark.parametrize(
    ("steps", "mu", "delta"), [(10**7, 8.0, 1e-8), (10**6, 3.0, 1e-9), (10**5, 3.0, 1e-10), (10**3, 8.0, 1e-12)]
)
def test_many_repetitions_at_a_small_delta_stay_above_the_closed_form(steps: int, mu: float, delta: float) -> None:
    # The rounding of Fourier transforms grows with the repetitions; uncharged, it would make ε too small here.
    history = [(PoissonSampledGaussian(sampling_probability=1 - 1e-12, noise_multiplier=steps**0.5 / mu), steps)]
    spent = mpmath.mpf(PldAccountant().epsilon(history, delta))
    exact = mpmath.ncdf(mu / 2 - spent / mu) - mpmath.exp(spent) * mpmath.ncdf(-mu / 2 - spent / mu)
    assert exact <= delta


@pytest.mark.parametrize("delta", [1e-16, 1e-30])
def test_a_delta_below_the_grid_is_answered_by_renyi(delta: float) -> None:
    history = [(PoissonSampledGaussian(sampling_probability=0.1, noise_multiplier=2.0), 100)]
    assert PldAccountant().epsilon(history, delta) == RdpAccountant().epsilon(history, delta) < math.inf
