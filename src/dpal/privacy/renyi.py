"""Rényi differential privacy: curves over orders, and their conversion to (ε, δ)."""

import math
from collections.abc import Sequence
from functools import singledispatch
from typing import cast

import numpy as np
from numpy.typing import NDArray

from dpal.errors import InvalidArgument, NumericalFailure
from dpal.privacy.history import CanonicalHistory, Entry, History, canonical
from dpal.privacy.mechanisms import (
    BernoulliSelection,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    Mechanism,
    PoissonSampledGaussian,
    PureDP,
)
from dpal.privacy.sampled_gaussian import log_moments

Array = NDArray[np.float64]

# Opacus's orders, so that its users see the same ε, and a tail for small ε.
DEFAULT_ORDERS: tuple[float, ...] = (
    *(1 + tenth / 10 for tenth in range(1, 100)),
    *(float(order) for order in range(12, 64)),
    *(64.0, 80.0, 96.0, 112.0, 128.0, 160.0, 192.0, 224.0, 256.0, 320.0, 384.0, 448.0, 512.0),
)


def checked_orders(orders: Sequence[float]) -> Array:
    """The orders as an array, each above 1 and finite."""
    if len(orders) == 0:
        raise InvalidArgument("orders", orders, "at least one order")
    checked = np.asarray(orders, dtype=np.float64)
    if not ((checked > 1) & (checked < math.inf)).all():
        wrong = next(order for order in orders if not 1 < order < math.inf)
        raise InvalidArgument("order", wrong, "a finite number above 1")
    return checked


def renyi_curve(history: History, orders: Sequence[float] = DEFAULT_ORDERS) -> Array:
    """The Rényi divergence of a whole history at each order, an upper bound in both directions.

    Composition adds curves (arXiv:1702.07476 Prop. 1, valid for adaptive mechanisms).
    """
    alpha = checked_orders(orders)
    # Along the columns numpy adds one row after the other: the sum is that of the canonical order, bit for bit.
    return checked_curve(_entry_curves(canonical(history), alpha).sum(axis=0))


def _entry_curves(entries: CanonicalHistory, alpha: Array) -> Array:
    """One row per entry; of a history that continues another one, all rows but one may be known."""
    key = alpha.tobytes()
    known = entries.known.get(key)
    if known is not None:
        return cast("Array", known)
    before = entries.before
    if before is None or entries.last is None:
        return _curves_of(entries, alpha)
    # Several curves at once are much faster than one after the other.
    one_by_one = key in before.known or (before.before is not None and key in before.before.known)
    earlier = _entry_curves(before, alpha) if one_by_one else _curves_of(before, alpha)
    before.known[key] = earlier
    kind = entries.last[0]
    place, times = next((index, times) for index, (other, times) in enumerate(entries) if other == kind)
    curves = np.empty((len(entries), len(alpha)))
    curves[:place] = earlier[:place]
    curves[place : place + 1] = _curves_of(((kind, times),), alpha)
    curves[place + 1 :] = earlier[place + 1 - (len(entries) - len(before)) :]
    return curves


def _curves_of(entries: Sequence[Entry], alpha: Array) -> Array:
    sampled = _sampled_curves([kind for kind, _ in entries if isinstance(kind, PoissonSampledGaussian)], alpha)
    curves = np.empty((len(entries), len(alpha)))
    for row, (kind, times) in enumerate(entries):
        curves[row] = times * (sampled[kind] if isinstance(kind, PoissonSampledGaussian) else _curve(kind, alpha))
    return curves


# Planners ask for the same steps again and again; a curve is small, and a pure function of its key.
_known_curves: dict[tuple[PoissonSampledGaussian, bytes], Array] = {}
_MOST_KNOWN_CURVES = 20_000


def _sampled_curves(kinds: list[PoissonSampledGaussian], alpha: Array) -> dict[PoissonSampledGaussian, Array]:
    """The curves of sampled Gaussians, those not known yet all at once."""
    key = alpha.tobytes()
    new = [kind for kind in kinds if (kind, key) not in _known_curves]
    if new:
        if len(_known_curves) + len(new) > _MOST_KNOWN_CURVES:
            _known_curves.clear()
            new = kinds
        probabilities = np.array([kind.sampling_probability for kind in new])
        noises = np.array([kind.noise_multiplier for kind in new])
        for kind, curve in zip(new, log_moments(probabilities, noises, alpha) / (alpha - 1), strict=True):
            _known_curves[kind, key] = curve
    return {kind: _known_curves[kind, key] for kind in kinds}


def checked_curve(curve: Array) -> Array:
    """The curve itself, unless a value is NaN or negative: those are never clamped."""
    if not (curve >= 0).all():
        raise NumericalFailure(
            f"A Rényi divergence came out as {float(curve.min())}; it must be at least 0. Nothing was charged. "
            "Please report the history that led here."
        )
    return curve


@singledispatch
def _curve(mechanism: Mechanism, alpha: Array) -> Array:
    raise InvalidArgument("mechanism", mechanism, "one that has a Rényi curve")


@_curve.register
def _(mechanism: Gaussian, alpha: Array) -> Array:
    # arXiv:1702.07476 Prop. 7. Exact.
    return alpha / (2 * mechanism.noise_multiplier**2)


@_curve.register
def _(mechanism: Laplace, alpha: Array) -> Array:
    # arXiv:1702.07476 Prop. 6. Exact.
    grown = (alpha - 1) * mechanism.epsilon + np.log(alpha / (2 * alpha - 1))
    shrunk = -alpha * mechanism.epsilon + np.log((alpha - 1) / (2 * alpha - 1))
    return _rounded_up(np.logaddexp(grown, shrunk), alpha)


@_curve.register
def _(mechanism: DiscreteLaplace, alpha: Array) -> Array:
    # The definition summed: both ends, and a geometric series between them (docs/maths/selection.md). Exact.
    size, steps = mechanism.epsilon, mechanism.grid_steps
    log_total = np.logaddexp((alpha - 1) * size, -alpha * size)
    if steps > 1:
        slope = (2 * alpha - 1) * size / steps
        # Σ exp(x·slope) over x = 1 … steps − 1, divided by exp(steps·slope), each factor written without overflow.
        log_series = -slope + np.log(-np.expm1(-(steps - 1) * slope)) - np.log(-np.expm1(-slope))
        log_between = math.log(-math.expm1(-size / steps)) + (alpha - 1) * size + log_series
        log_total = np.logaddexp(log_total, log_between)
    return _rounded_up(log_total - math.log1p(math.exp(-size / steps)), alpha)


@_curve.register
def _(mechanism: DiscreteGaussian, alpha: Array) -> Array:
    # A whole shift costs no more than under continuous noise (arXiv:2004.00010 Prop. 5); the seen coin mixes. Upper.
    plain = alpha * mechanism.grid_steps**2 / (2 * mechanism.variance)
    if mechanism.participation == 1:
        return plain
    mixed = np.logaddexp(math.log1p(-mechanism.participation), math.log(mechanism.participation) + (alpha - 1) * plain)
    return np.maximum(mixed / (alpha - 1), 0.0)


@_curve.register
def _(mechanism: Exponential, alpha: Array) -> Array:
    # Bounded range ε₀ gives ε₀²/8-zCDP (arXiv:2004.07223), and pure ε₀-DP. Upper bound.
    return np.minimum(mechanism.epsilon, alpha * mechanism.epsilon**2 / 8)


@_curve.register
def _(mechanism: PureDP, alpha: Array) -> Array:
    # Randomised response dominates every ε-DP mechanism (arXiv:1311.0776); this is its curve.
    grown = (alpha - 1) * mechanism.epsilon
    shrunk = -alpha * mechanism.epsilon
    return _rounded_up(np.logaddexp(grown, shrunk) - np.log1p(math.exp(-mechanism.epsilon)), alpha)


def _rounded_up(log_moment: Array, alpha: Array) -> Array:
    """The divergence of a log moment that is a difference of terms around 1, for which rounding matters below 1e-7."""
    return (log_moment + 4e-16 * (1 + np.abs(log_moment))) / (alpha - 1)


@_curve.register
def _(mechanism: BernoulliSelection, alpha: Array) -> Array:
    high, low = mechanism.probability_high, mechanism.probability_low
    return np.maximum(bernoulli_curve(high, low, alpha), bernoulli_curve(low, high, alpha))


def bernoulli_curve(probability: float, other_probability: float, alpha: Array) -> Array:
    """The Rényi divergence of one coin from another. Exact, in this direction."""
    taken = alpha * math.log(probability) + (1 - alpha) * math.log(other_probability)
    passed = alpha * math.log1p(-probability) + (1 - alpha) * math.log1p(-other_probability)
    # Jensen: at least 0; equal coins may round to just below it.
    return np.logaddexp(taken, passed) / (alpha - 1) if probability != other_probability else np.zeros(len(alpha))


def conversion(orders: Array, delta: float) -> Array:
    """What the step from a divergence to ε at δ adds at each order (arXiv:2004.00010 Prop. 12)."""
    return np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)


def epsilon_from_curve(curve: Array, orders: Array, delta: float) -> float:
    """The smallest ε that the curve proves at δ, minimised over orders.

    Where the formula falls below 0 the answer is 0, since (ε, δ) with ε < 0 implies (0, δ).
    """
    return max(0.0, float((curve + conversion(orders, delta)).min()))


def delta_from_curve(curve: Array, orders: Array, epsilon: float) -> float:
    """The smallest δ that the curve proves at ε: the same proposition, read the other way."""
    log_deltas = (orders - 1) * (curve - epsilon + np.log1p(-1 / orders)) - np.log(orders)
    return min(1.0, math.exp(min(0.0, float(log_deltas.min()))))
