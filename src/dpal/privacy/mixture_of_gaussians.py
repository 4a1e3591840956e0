"""One training step with several records of one person, each drawn by itself: a mixture of Gaussians.

If record i is drawn with a probability of at most q_i, the step is dominated, in both directions, by the scalar pair
E_j N(j, σ²) against N(0, σ²), with j the number drawn at the rates q_i: whatever the directions of the gradients
(docs/maths/group-privacy.md has the proof, by Kahane's convexity inequality; compare arXiv:2310.15526 Cor. 4.7).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from dpal.errors import InvalidArgument, NumericalFailure
from dpal.privacy import checks
from dpal.privacy.losses import TAIL_DEVIATIONS, LossCells, cell_probabilities, edges_of, loss_cells, loss_range
from dpal.privacy.mechanisms import Gaussian, Mechanism, PoissonSampledGaussian

Array = NDArray[np.float64]
# How many records are drawn with each probability.
Rates: TypeAlias = tuple[tuple[float, int], ...]

# Far more than one person has in a pool; beyond it the weights would lose digits.
MOST_RECORDS = 1_000
# The probability beyond TAIL_DEVIATIONS of a normal distribution.
_LEAST_PROBABILITY = math.exp(-50)
_MOST_ITERATIONS = 200
_STRIDE = 32
_CHUNK = 1 << 21


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureOfGaussians(Mechanism):
    """The sum gets Gaussian noise and is moved by as many contributions as records of one person are drawn.

    The noise's standard deviation is noise_multiplier times the largest norm of one contribution.
    """

    name: ClassVar[str] = "mixture_of_gaussians"
    rates: Rates
    noise_multiplier: float

    def __post_init__(self) -> None:
        rates = [
            (checks.open_probability("sampling_probability", rate), checks.count("records", records))
            for rate, records in self.rates
        ]
        if not 1 <= sum(records for _, records in rates) <= MOST_RECORDS:
            raise InvalidArgument("rates", self.rates, f"for 1 to {MOST_RECORDS:,} records")
        object.__setattr__(self, "rates", tuple(rates))
        self._store(noise_multiplier=checks.noise("noise_multiplier", self.noise_multiplier))

    def log_weights(self) -> Array:
        """The logarithms of the probabilities that 0, 1, … of the records are drawn."""
        total = np.zeros(1)
        for rate, records in self.rates:
            drawn = np.arange(records + 1)
            ways = np.array([math.log(math.comb(records, count)) for count in range(records + 1)])
            own = ways + drawn * math.log(rate) + (records - drawn) * math.log1p(-rate)
            both = np.full((records + 1, len(total) + records), -np.inf)
            for count in range(records + 1):
                both[count, count : count + len(total)] = own[count] + total
            total = np.logaddexp.reduce(both, axis=0)
        return total


def checked_records(records: object) -> int:
    """A number of records of one person."""
    number = checks.count("records", records)
    if not 1 <= number <= MOST_RECORDS:
        raise InvalidArgument("records", records, f"a whole number from 1 to {MOST_RECORDS:,}")
    return number


def step_of_several(rates: Sequence[tuple[float, int]], noise_multiplier: float) -> Mechanism | None:
    """A training step for so many records of one person at each rate (at most); None if it touches none of them."""
    together: dict[float, int] = {}
    for rate, records in rates:
        if rate > 0 and records > 0:
            together[rate] = together.get(rate, 0) + records
    records = sum(together.values())
    if records == 0:
        return None
    if 1.0 in together:
        # A higher rate for the others dominates.
        return Gaussian(noise_multiplier=noise_multiplier / records)
    if records == 1:
        return PoissonSampledGaussian(sampling_probability=next(iter(together)), noise_multiplier=noise_multiplier)
    return MixtureOfGaussians(rates=tuple(sorted(together.items())), noise_multiplier=noise_multiplier)


@loss_range.register
def _(mechanism: MixtureOfGaussians) -> tuple[float, float]:
    # The output x is N(0, 1) with blanks and E_j N(j / noise, 1) with the records. The loss rises with x.
    noise, log_weights = mechanism.noise_multiplier, mechanism.log_weights()
    drawn = np.arange(len(log_weights))
    at_least = np.cumsum(np.exp(log_weights)[::-1])[::-1]
    most = int(np.flatnonzero(at_least >= _LEAST_PROBABILITY)[-1])

    def loss(x: float) -> float:
        return float(np.logaddexp.reduce(log_weights + drawn * (x / noise) - drawn**2 / (2 * noise**2)))

    return loss(-TAIL_DEVIATIONS), loss(TAIL_DEVIATIONS + most / noise)


@loss_cells.register
def _(mechanism: MixtureOfGaussians, interval: float) -> LossCells:
    return _mixture_cells(mechanism, interval)


# Both directions and neighbouring searches ask for the same cells.
@lru_cache(maxsize=16)
def _mixture_cells(mechanism: MixtureOfGaussians, interval: float) -> LossCells:
    first, edges = edges_of(mechanism, interval)
    noise, log_weights = mechanism.noise_multiplier, mechanism.log_weights()
    # The output x at which the loss log(Σ_j w_j·exp(jx/noise − j²/2noise²)) is at an edge; −∞ below log w_0.
    above = edges - log_weights[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        log_excess = np.where(above > 0, edges + np.log(-np.expm1(-above)), -np.inf)
    x = _outputs_at(log_excess, log_weights[1:], noise)
    blank = cell_probabilities(x)
    shifted = np.zeros(len(blank))
    shifted_outside = 0.0
    for drawn, weight in enumerate(np.exp(log_weights).tolist()):
        shift = drawn / noise
        shifted += weight * cell_probabilities(x - shift)
        shifted_outside += weight * float(scipy.special.ndtr(x[0] - shift) + scipy.special.ndtr(shift - x[-1]))
    return LossCells(
        interval=interval,
        first=first,
        under_record=shifted,
        under_blank=blank,
        record_outside=shifted_outside,
        blank_outside=float(scipy.special.ndtr(x[0]) + scipy.special.ndtr(-x[-1])),
    )


def _outputs_at(log_excess: Array, log_weights: Array, noise: float) -> Array:
    """Where log(Σ_{j≥1} w_j·exp(jx/noise − j²/2noise²)) has these rising values; −∞ where it has none."""
    outputs = np.full(len(log_excess), -np.inf)
    wanted = np.flatnonzero(log_excess > -np.inf)
    drawn = np.arange(1, len(log_weights) + 1)
    slopes, heights = drawn / noise, log_weights - drawn**2 / (2 * noise**2)
    values = log_excess[wanted]
    if len(values) > 2 * _STRIDE:
        # Between the roots of every so many values, a straight line starts all others close to their own.
        some = np.append(values[:-1:_STRIDE], values[-1])
        start = np.interp(values, some, _newton(some, _right_of_root(some, slopes, heights), slopes, heights))
    else:
        start = _right_of_root(values, slopes, heights)
    size = max(1, _CHUNK // len(drawn))
    for first in range(0, len(wanted), size):
        chunk = slice(first, first + size)
        outputs[wanted[chunk]] = _newton(values[chunk], start[chunk], slopes, heights)
    return outputs


def _right_of_root(values: Array, slopes: Array, heights: Array) -> Array:
    """The smallest x at which one term alone has the value."""
    return np.min((values[:, None] - heights) / slopes, axis=1)


def _newton(values: Array, start: Array, slopes: Array, heights: Array) -> Array:
    """The x with log(Σ_j exp(heights_j + slopes_j·x)) equal to each value.

    That function is convex and rising. So whatever the start, Newton's first step leads right of the root, and all
    others lead left, to the root and not beyond it.
    """
    x, left = start.copy(), np.arange(len(start))
    for _ in range(_MOST_ITERATIONS):
        terms = heights + slopes * x[left, None]
        highest = terms.max(axis=1)
        shares = np.exp(terms - highest[:, None])
        total = shares.sum(axis=1)
        move = (highest + np.log(total) - values[left]) * total / (shares @ slopes)
        x[left] -= move
        left = left[np.abs(move) > 1e-14 * np.maximum(1.0, np.abs(x[left]))]
        if not len(left):
            return x
    raise NumericalFailure("The losses of several records of one person could not be computed. Nothing was charged.")
