"""Moments of the sampled Gaussian next to their definition; golden tests compare more of them with mpmath."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from dpal.privacy.sampled_gaussian import SMALLEST_NOISE_FOR_QUADRATURE, log_moments


def by_definition(q: float, noise: float, order: float) -> float:
    """The integral of N(0, 1) · (1 − q + q·exp(x/noise − 1/2noise²))^α, as a logarithm."""

    def integrand(x: float) -> float:
        ratio = 1 - q + q * math.exp(x / noise - 1 / (2 * noise**2))
        return math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) * ratio**order

    return math.log(quad(integrand, -12, 12 + order / noise, epsabs=1e-14, epsrel=1e-12, limit=500)[0])


def moments(q: float, noise: float, *orders: float, **options: float) -> list[float]:
    return log_moments(np.array([q]), np.array([noise]), np.array(orders), **options)[0].tolist()


@pytest.mark.parametrize(("q", "noise"), [(0.5, 1.0), (0.01, 2.0), (0.9, 0.8)])
def test_whole_and_fractional_orders_are_those_of_the_definition(q: float, noise: float) -> None:
    orders = (1.5, 2.0, 2.5, 3.0, 7.3)
    assert moments(q, noise, *orders) == pytest.approx([by_definition(q, noise, order) for order in orders], rel=1e-7)


def test_the_second_moment_by_hand_and_no_digit_lost_at_tiny_rates() -> None:
    """A(2) = 1 + q²(exp(1/noise²) − 1): at q = 1e-10 that is 1 to double precision, and its logarithm is not 0."""
    for q in (0.3, 1e-4, 1e-10):
        (found,) = moments(q, 1.0, 2.0)
        assert found == pytest.approx(q**2 * math.expm1(1) if q < 1e-3 else math.log1p(q**2 * math.expm1(1)), rel=1e-6)


def test_where_chords_stand_in_they_are_above() -> None:
    exact = moments(0.2, 1.0, 2.5, 3.5)
    chords = moments(0.2, 1.0, 2.5, 3.5, quadrature_from=math.inf)
    assert all(exact_one < chord < 1.5 * exact_one for exact_one, chord in zip(exact, chords, strict=True))
    # Between 1, where the moment is 1, and the first whole order too.
    assert moments(0.2, 1.0, 1.5, quadrature_from=math.inf) == pytest.approx([moments(0.2, 1.0, 2.0)[0] / 2])


def test_very_little_noise_is_answered_by_chords_and_stays_finite() -> None:
    noise = SMALLEST_NOISE_FOR_QUADRATURE / 2
    below, between, above = moments(0.01, noise, 3.0, 3.25, 4.0)
    assert between == pytest.approx(0.75 * below + 0.25 * above)
    assert math.isfinite(moments(0.01, 1e-3, 512.0)[0])
