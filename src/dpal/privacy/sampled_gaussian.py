"""The Rényi curve of the Poisson-sampled Gaussian, for all orders and many mechanisms at once.

With A(α) the α-th moment of the likelihood ratio, the curve is log A(α) / (α − 1)
(arXiv:1908.10530 Sec. 3, where A is shown to bound both directions). We compute A − 1, which is
a sum of positive terms, so that rare sampling loses no digits: log A is then log1p of it.
docs/maths/sampled-gaussian.md has the derivations.
"""

import math
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Below this noise multiplier the quadrature would need too many points; a chord serves there instead.
SMALLEST_NOISE_FOR_QUADRATURE = 0.1
# The trapezoidal rule's error, and the tails it leaves out, are below exp(-40) of the value.
_DIGITS = 40.0
_LEFT_END = -10.0
# Where more of the integrand than this is small, picking those points out takes longer than taking all.
_FEW = 0.2
# Above this many numbers in one array, mechanisms are taken in halves: they stay in a cache of the processor.
_LARGEST_ARRAY = 60_000


def log_moments(
    sampling_probabilities: Array,
    noise_multipliers: Array,
    orders: Array,
    *,
    quadrature_from: float = SMALLEST_NOISE_FOR_QUADRATURE,
) -> Array:
    """Log A for each mechanism (rows; 0 < sampling probability < 1) at each order (columns; > 1).

    Fractional orders are exact from the noise multiplier `quadrature_from` on, and chords, above, below it.
    """
    result = np.empty((len(noise_multipliers), len(orders)))
    whole = orders == np.floor(orders)
    if whole.any():
        wholes = tuple(int(order) for order in orders[whole])
        result[:, whole] = _whole_orders(sampling_probabilities, noise_multipliers, wholes)
    if not whole.all():
        fractional = orders[~whole]
        columns = np.flatnonzero(~whole)
        smooth = noise_multipliers >= quadrature_from
        for rows, method in ((np.flatnonzero(smooth), _quadrature), (np.flatnonzero(~smooth), _chords)):
            if rows.size:
                values = method(sampling_probabilities[rows], noise_multipliers[rows], fractional)
                result[np.ix_(rows, columns)] = values
    return result


@lru_cache(maxsize=64)
def _binomial_terms(orders: tuple[int, ...]) -> tuple[Array, Array, Array, NDArray[np.intp]]:
    """For every order α the terms i = 2 … α, one after the other: i, α − i, log C(α, i), and where each α starts."""
    lengths = np.array(orders) - 1
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    taken = np.concatenate([np.arange(2, order + 1) for order in orders]).astype(float)
    left = np.repeat(np.array(orders, dtype=float), lengths) - taken
    log_binomial = (
        scipy.special.gammaln(taken + left + 1) - scipy.special.gammaln(taken + 1) - scipy.special.gammaln(left + 1)
    )
    return taken, left, log_binomial, starts


def _whole_orders(sampling_probabilities: Array, noise_multipliers: Array, orders: tuple[int, ...]) -> Array:
    # arXiv:1908.10530 Sec. 3.3, less the binomial theorem's Σ C(α,i) q^i (1−q)^(α−i) = 1:
    # A − 1 = Σ_{i≥2} C(α,i) q^i (1−q)^(α−i) (exp((i²−i)/2σ²) − 1). Exact.
    taken, left, log_binomial, starts = _binomial_terms(orders)
    q = sampling_probabilities[:, None]
    exponent = taken * (taken - 1) / (2 * np.square(noise_multipliers)[:, None])
    log_terms = log_binomial + taken * np.log(q) + left * np.log1p(-q) + exponent + np.log(-np.expm1(-exponent))
    peak = np.maximum.reduceat(log_terms, starts, axis=1)
    scaled = np.exp(log_terms - np.repeat(peak, np.array(orders) - 1, axis=1))
    return np.logaddexp(0, peak + np.log(np.add.reduceat(scaled, starts, axis=1)))


def _quadrature(sampling_probabilities: Array, noise_multipliers: Array, orders: Array) -> Array:
    """Log A by the trapezoidal rule, which converges geometrically for analytic integrands."""
    # A − 1 = E[(1+y)^α − 1 − αy], y = q·(exp(x/σ − 1/2σ²) − 1), x standard normal, because E[y] = 0. By
    # Bernoulli's inequality the integrand is nowhere negative. Its branch points lie πσ off the real line.
    strip = np.minimum(math.pi * noise_multipliers, math.sqrt(2 * _DIGITS))
    step = 2 * math.pi * strip / (_DIGITS + np.square(strip) / 2)
    right_end = orders.max() / noise_multipliers - _LEFT_END
    points = int(np.ceil(((right_end - _LEFT_END) / step).max())) + 1
    if len(step) > 1 and len(step) * len(orders) * points > _LARGEST_ARRAY:
        half = len(step) // 2
        parts = (slice(None, half), slice(half, None))
        return np.concatenate(
            [_quadrature(sampling_probabilities[part], noise_multipliers[part], orders) for part in parts]
        )
    x = _LEFT_END + step[:, None] * np.arange(points)
    tilt = x / noise_multipliers[:, None] - 1 / (2 * np.square(noise_multipliers)[:, None])
    log_ratio = _log_mixture(sampling_probabilities[:, None], tilt)
    log_weight = -np.square(x) / 2

    # From here on: mechanisms × orders × points.
    order = orders[None, :, None]
    grown = order * log_ratio[:, None, :]
    log_integrand = grown + log_weight[:, None, :]
    peak = log_integrand.max(axis=2, keepdims=True)
    weight = np.exp(log_weight[:, None, :] - peak)
    integrand = (
        np.exp(log_integrand - peak)
        - order * np.exp((log_ratio + log_weight)[:, None, :] - peak)
        + (order - 1) * weight
    )
    small = np.abs(grown) < 0.05
    if np.count_nonzero(small) > _FEW * small.size:
        every = np.arange(len(orders))[None, :, None]
        near = _small_integrand(orders, every, log_ratio[:, None, :])
        integrand = np.where(small, near * weight, integrand)
    else:
        mechanism, which, point = np.nonzero(small)
        integrand[small] = _small_integrand(orders, which, log_ratio[mechanism, point]) * weight[small]
    integral = integrand.sum(axis=2) * (step[:, None] / math.sqrt(2 * math.pi))
    return np.logaddexp(0, peak[:, :, 0] + np.log(integral))


def _log_mixture(q: Array, tilt: Array) -> Array:
    """log(1 − q + q·exp(tilt)) without overflow, and exact where it is near 0."""
    near = np.log1p(q * np.expm1(np.minimum(tilt, 1)))
    return np.where(tilt < 1, near, np.logaddexp(np.log1p(-q), np.log(q) + tilt))


def _small_integrand(orders: Array, which: NDArray[np.intp], log_ratio: Array) -> Array:
    """exp(αL) − 1 − α(exp(L) − 1) for |αL| < 0.05 as Σ_{m≥2} (α^m − α) L^m / m!, free of cancellation."""
    total = np.zeros_like(log_ratio)
    for power in range(10, 1, -1):
        total = total * log_ratio + ((orders**power - orders) / math.factorial(power))[which]
    return total * np.square(log_ratio)


def _chords(sampling_probabilities: Array, noise_multipliers: Array, orders: Array) -> Array:
    """An upper bound on log A between whole orders: it is convex in α, and 0 at α = 1."""
    below = np.floor(orders).astype(int)
    wholes = tuple(range(2, int(below.max()) + 2))
    exact = _whole_orders(sampling_probabilities, noise_multipliers, wholes)
    table = np.concatenate((np.zeros((len(noise_multipliers), 1)), exact), axis=1)
    share = orders - below
    return (1 - share) * table[:, below - 1] + share * table[:, below]
