"""Rényi curves and their conversion, next to values by hand."""

import math

import numpy as np
import pytest
from histories import step

from dpal.errors import InvalidArgument, NumericalFailure
from dpal.privacy.mechanisms import BernoulliSelection, Exponential, Gaussian, PureDP
from dpal.privacy.renyi import (
    DEFAULT_ORDERS,
    bernoulli_curve,
    checked_curve,
    checked_orders,
    conversion,
    delta_from_curve,
    epsilon_from_curve,
    renyi_curve,
)

NAN = float("nan")


@pytest.mark.parametrize("order", [1, 0.5, -3, NAN, math.inf])
def test_a_bad_order_is_named(order: float) -> None:
    with pytest.raises(InvalidArgument, match=r"order is .* must be a finite number above 1"):
        checked_orders([2.0, order])


def test_no_orders_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="at least one order"):
        renyi_curve([], ())


def test_order_two_by_hand() -> None:
    """At α = 2 the divergence is the logarithm of the second moment of the likelihood ratio."""
    (gaussian,) = renyi_curve([(Gaussian(noise_multiplier=2), 3)], (2.0,))
    assert gaussian == pytest.approx(3 / 4)
    (sampled,) = renyi_curve([(step(0.1, 2.0), 5)], (2.0,))
    assert sampled == pytest.approx(5 * math.log1p(0.01 * math.expm1(0.25)), rel=1e-12)
    (coin,) = renyi_curve([(BernoulliSelection(probability_high=0.8, probability_low=0.4), 1)], (2.0,))
    ways = [math.log(a**2 / b + (1 - a) ** 2 / (1 - b)) for a, b in ((0.8, 0.4), (0.4, 0.8))]
    assert coin == pytest.approx(max(ways))
    (pure,) = renyi_curve([(PureDP(epsilon=1.0), 1)], (2.0,))
    truth = 1 / (1 + math.exp(-1))
    assert pure == pytest.approx(math.log(truth * math.e + (1 - truth) / math.e))


def test_the_exponential_mechanism_costs_the_lesser_of_its_two_bounds() -> None:
    curve = renyi_curve([(Exponential(epsilon=2.0), 1)], (2.0, 4.0, 8.0))
    assert curve.tolist() == pytest.approx([1.0, 2.0, 2.0])


def test_equal_coins_tell_nothing() -> None:
    assert not bernoulli_curve(0.3, 0.3, np.asarray(DEFAULT_ORDERS)).any()


@pytest.mark.parametrize("value", [NAN, -1e-18])
def test_a_curve_that_cannot_be_is_never_clamped(value: float) -> None:
    with pytest.raises(NumericalFailure, match="Nothing was charged"):
        checked_curve(np.array([0.5, value]))


def test_epsilon_is_never_below_zero_and_delta_never_above_one() -> None:
    orders = np.array([2.0])
    assert epsilon_from_curve(np.array([0.0]), orders, 0.9) == 0
    assert delta_from_curve(np.array([50.0]), orders, 0.0) == 1


def test_both_conversions_are_the_same_proposition() -> None:
    orders, curve = np.array([8.0]), np.array([1.5])
    epsilon = epsilon_from_curve(curve, orders, 1e-5)
    assert epsilon == pytest.approx(1.5 + float(conversion(orders, 1e-5)[0]))
    assert delta_from_curve(curve, orders, epsilon) == pytest.approx(1e-5)
