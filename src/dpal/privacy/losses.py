"""From a mechanism to a privacy-loss distribution on a grid, rounded so that ε can only grow.

P is the output with the record and Q the output with a blank in its place. The loss of an outcome is
log(P/Q). Each grid cell's probabilities under P and Q are moved to the cell's two ends so that both are
kept: a mean-preserving spread of the likelihood ratio, which can only raise every δ(ε). The result is the
"connect the dots" distribution of arXiv:2207.04380; docs/maths/privacy-loss.md has the proof.
"""

import math
from dataclasses import dataclass, replace
from enum import Enum
from functools import singledispatch

import numpy as np
import scipy
from numpy.typing import NDArray

from dpal.errors import InvalidArgument
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

Array = NDArray[np.float64]

# Losses without bound end where the normal distribution has less than exp(-50) left.
TAIL_DEVIATIONS = 9.85
_GAUSSIAN_TAIL = math.exp(-48)


class Direction(Enum):
    """Which of the two neighbours holds the record: the first (its loss is log P/Q) or the second."""

    RECORD_FIRST = "record_first"
    BLANK_FIRST = "blank_first"


@dataclass(frozen=True, slots=True, kw_only=True)
class LossDistribution:
    """Probabilities of the losses (first, first + 1, …) · interval, and of an infinite loss."""

    interval: float
    first: int
    probabilities: Array
    infinite: float

    @property
    def losses(self) -> Array:
        return np.arange(self.first, self.first + len(self.probabilities), dtype=np.float64) * self.interval


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCells:
    """Probabilities under P and Q of the loss cells [i, i + 1] · interval, i = first, first + 1, …"""

    interval: float
    first: int
    under_record: Array
    under_blank: Array
    # The probabilities of losses outside the cells, charged as infinite losses.
    record_outside: float = 0.0
    blank_outside: float = 0.0

    def distribution(self, direction: Direction) -> LossDistribution:
        """The two-ends rounding of the cells, seen from one side."""
        if direction is Direction.RECORD_FIRST:
            first, upper, lower, infinite = self.first, self.under_record, self.under_blank, self.record_outside
        else:
            # The loss changes its sign, so the cells come in reverse and P and Q change places.
            first = -(self.first + len(self.under_record))
            upper, lower, infinite = self.under_blank[::-1], self.under_record[::-1], self.blank_outside
        # Solve up + down = upper and up·exp(−right end) + down·exp(−left end) = lower for each cell. A left end
        # too large for exp is taken smaller, and rounding errors end at the cell's own mass: both safe.
        left_ends = (first + np.arange(len(upper))) * self.interval
        up = (upper - lower * np.exp(np.minimum(left_ends, 700.0))) / -math.expm1(-self.interval)
        up = np.clip(up, 0.0, upper)
        probabilities = np.zeros(len(upper) + 1)
        probabilities[1:] += up
        probabilities[:-1] += upper - up
        return LossDistribution(interval=self.interval, first=first, probabilities=probabilities, infinite=infinite)


@singledispatch
def loss_range(mechanism: Mechanism) -> tuple[float, float]:
    """The smallest and largest loss that matter: the rest has a probability below exp(−50)."""
    raise InvalidArgument("mechanism", mechanism, "one that has a privacy-loss distribution")


@singledispatch
def loss_cells(mechanism: Mechanism, interval: float) -> LossCells:
    """The mechanism's losses on the grid of multiples of the interval."""
    raise InvalidArgument("mechanism", mechanism, "one that has a privacy-loss distribution")


def edges_of(mechanism: Mechanism, interval: float) -> tuple[int, Array]:
    """The ends of the cells that hold all losses that matter, and the number of the first."""
    low, high = loss_range(mechanism)
    first = math.floor(low / interval)
    last = max(math.ceil(high / interval), first + 1)
    return first, np.arange(first, last + 1, dtype=np.float64) * interval


@loss_range.register
def _(mechanism: Gaussian) -> tuple[float, float]:
    return _gaussian_range(1.0, mechanism.noise_multiplier)


@loss_range.register
def _(mechanism: PoissonSampledGaussian) -> tuple[float, float]:
    return _gaussian_range(mechanism.sampling_probability, mechanism.noise_multiplier)


@loss_cells.register
def _(mechanism: Gaussian, interval: float) -> LossCells:
    return _gaussian_cells(mechanism, interval, 1.0, mechanism.noise_multiplier)


@loss_cells.register
def _(mechanism: PoissonSampledGaussian, interval: float) -> LossCells:
    return _gaussian_cells(mechanism, interval, mechanism.sampling_probability, mechanism.noise_multiplier)


def _gaussian_range(q: float, noise: float) -> tuple[float, float]:
    # The output x is N(0, 1) with a blank and the mixture (1−q)·N(0, 1) + q·N(1/noise, 1) with the record.
    def loss(x: float) -> float:
        tilt = x / noise - 1 / (2 * noise**2)
        return float(np.logaddexp(math.log1p(-q), math.log(q) + tilt)) if q < 1 else tilt

    return loss(-TAIL_DEVIATIONS), loss(TAIL_DEVIATIONS + 1 / noise)


def _gaussian_cells(mechanism: Mechanism, interval: float, q: float, noise: float) -> LossCells:
    first, edges = edges_of(mechanism, interval)
    # The output x at which the loss log(1 − q + q·exp(x/noise − 1/2noise²)) is at an edge; −∞ below log(1 − q).
    if q < 1:
        above = edges - math.log1p(-q)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_excess = np.where(above > 0, edges + np.log(-np.expm1(-above)), -np.inf)
        x = (log_excess - math.log(q)) * noise + 1 / (2 * noise)
    else:
        x = edges * noise + 1 / (2 * noise)
    blank = cell_probabilities(x)
    shifted = cell_probabilities(x - 1 / noise)
    blank_outside = float(scipy.special.ndtr(x[0]) + scipy.special.ndtr(-x[-1]))
    shifted_outside = float(scipy.special.ndtr(x[0] - 1 / noise) + scipy.special.ndtr(1 / noise - x[-1]))
    return LossCells(
        interval=interval,
        first=first,
        under_record=(1 - q) * blank + q * shifted,
        under_blank=blank,
        record_outside=(1 - q) * blank_outside + q * shifted_outside,
        blank_outside=blank_outside,
    )


def cell_probabilities(x: Array) -> Array:
    """Standard normal probabilities between neighbouring points that rise, from the tail that keeps more digits."""
    middle = int(np.searchsorted(x[1:], 0.0, side="right"))
    from_left, from_right = np.diff(scipy.special.ndtr(x[: middle + 1])), -np.diff(scipy.special.ndtr(-x[middle:]))
    return np.concatenate([from_left, from_right])


@loss_range.register
def _(mechanism: Laplace | Exponential | PureDP | DiscreteLaplace) -> tuple[float, float]:
    return -mechanism.epsilon, mechanism.epsilon


@loss_cells.register
def _(mechanism: Laplace, interval: float) -> LossCells:
    # P is Laplace(0, 1), Q is Laplace(ε, 1): half of P lies at the loss ε and half of Q at −ε.
    first, edges = edges_of(mechanism, interval)
    size = mechanism.epsilon
    inside = np.clip(edges, -size, size)
    record = np.where(edges < -size, 0.0, np.where(edges < size, np.exp((inside - size) / 2) / 2, 1.0))
    blank = np.where(edges < -size, 0.0, np.where(edges < size, 1 - np.exp(-(inside + size) / 2) / 2, 1.0))
    return _cells_from_cdfs(interval, first, record, blank)


@loss_cells.register
def _(mechanism: Exponential, interval: float) -> LossCells:
    # The least curve above all mechanisms of bounded range ε: δ(x) = (1 − u)² / (1 − exp(−ε)) with
    # u = exp((x − ε)/2) (arXiv:1909.13830); these are its two distribution functions.
    first, edges = edges_of(mechanism, interval)
    size = mechanism.epsilon
    below = (size - np.clip(edges, -size, size)) / 2
    record = 1 - np.expm1(-below) / math.expm1(-size)
    # (1 − u) / u, without dividing by a u too small for a float.
    blank = 1 - np.expm1(below) / math.expm1(size)
    return _cells_from_cdfs(interval, first, np.maximum(record, 0.0), np.maximum(blank, 0.0))


@loss_cells.register
def _(mechanism: PureDP, interval: float) -> LossCells:
    # Randomised response dominates every ε-DP mechanism (arXiv:1311.0776).
    truth = 1 / (1 + math.exp(-mechanism.epsilon))
    lie = math.exp(-mechanism.epsilon) * truth
    return _atom_cells(interval, (mechanism.epsilon, -mechanism.epsilon), (truth, lie), (lie, truth))


@loss_range.register
def _(mechanism: BernoulliSelection) -> tuple[float, float]:
    losses = _bernoulli_losses(mechanism)
    return min(losses), max(losses)


@loss_cells.register
def _(mechanism: BernoulliSelection, interval: float) -> LossCells:
    high, low = mechanism.probability_high, mechanism.probability_low
    return _atom_cells(interval, _bernoulli_losses(mechanism), (high, 1 - high), (low, 1 - low))


def _bernoulli_losses(mechanism: BernoulliSelection) -> tuple[float, float]:
    high, low = mechanism.probability_high, mechanism.probability_low
    return math.log(high) - math.log(low), math.log1p(-high) - math.log1p(-low)


@loss_cells.register
def _(mechanism: DiscreteLaplace, interval: float) -> LossCells:
    # The output x is centred on grid_steps with the record and on 0 with a blank. All x ≥ grid_steps share the loss ε,
    # all x ≤ 0 share −ε.
    steps = mechanism.grid_steps
    ratio = math.exp(-mechanism.epsilon / steps)
    x = np.arange(steps + 1, dtype=np.float64)
    losses = (2 * x - steps) * (mechanism.epsilon / steps)
    weights = np.full(steps + 1, -math.expm1(-mechanism.epsilon / steps))
    weights[[0, -1]] = 1.0
    record = weights * np.exp((x - steps) * (mechanism.epsilon / steps)) / (1 + ratio)
    return _atom_cells(interval, losses, record, record[::-1])


@loss_range.register
def _(mechanism: DiscreteGaussian) -> tuple[float, float]:
    losses = _discrete_gaussian_losses(mechanism, _discrete_gaussian_outputs(mechanism))
    return float(losses[0]), float(losses[-1])


@loss_cells.register
def _(mechanism: DiscreteGaussian, interval: float) -> LossCells:
    x = _discrete_gaussian_outputs(mechanism)
    # Both are divided by the same sum: what the ends leave out is below exp(−48) and charged as an infinite loss.
    total = np.exp(-(np.arange(-x[-1], x[-1] + 1, dtype=np.float64) ** 2) / (2 * mechanism.variance)).sum()
    part = mechanism.participation
    record = part * np.exp(-((x - mechanism.grid_steps) ** 2) / (2 * mechanism.variance)) / total
    blank = part * np.exp(-(x**2) / (2 * mechanism.variance)) / total
    losses = _discrete_gaussian_losses(mechanism, x)
    left_out = 1 - part
    cells = _atom_cells(interval, np.append(losses, 0.0), np.append(record, left_out), np.append(blank, left_out))
    return replace(cells, record_outside=_GAUSSIAN_TAIL, blank_outside=_GAUSSIAN_TAIL)


def _discrete_gaussian_outputs(mechanism: DiscreteGaussian) -> Array:
    reach = math.ceil(TAIL_DEVIATIONS * math.sqrt(mechanism.variance))
    return np.arange(-reach, mechanism.grid_steps + reach + 1, dtype=np.float64)


def _discrete_gaussian_losses(mechanism: DiscreteGaussian, x: Array) -> Array:
    steps = mechanism.grid_steps
    return (2 * x - steps) * (steps / (2 * mechanism.variance))


def _atom_cells(
    interval: float,
    losses: Array | tuple[float, ...],
    record: Array | tuple[float, ...],
    blank: Array | tuple[float, ...],
) -> LossCells:
    """Single outcomes with their losses and their probabilities under P and Q."""
    cells = np.floor(np.asarray(losses) / interval).astype(np.int64)
    first = int(cells.min())
    size = int(cells.max()) - first + 1
    under_record, under_blank = np.zeros(size), np.zeros(size)
    np.add.at(under_record, cells - first, record)
    np.add.at(under_blank, cells - first, blank)
    return LossCells(interval=interval, first=first, under_record=under_record, under_blank=under_blank)


def _cells_from_cdfs(interval: float, first: int, record: Array, blank: Array) -> LossCells:
    """Cells (left, right]; what lies at or below the first edge belongs to the first cell."""
    under_record, under_blank = np.diff(record), np.diff(blank)
    under_record[0] += record[0]
    under_blank[0] += blank[0]
    return LossCells(interval=interval, first=first, under_record=under_record, under_blank=under_blank)
