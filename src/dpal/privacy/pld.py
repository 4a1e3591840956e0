"""δ and ε of a history, read from the privacy-loss distribution that its entries compose to."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpal.errors import NumericalFailure
from dpal.privacy.composition import Parts, compose, continued, window_of
from dpal.privacy.history import CanonicalHistory, History, canonical
from dpal.privacy.losses import Direction, LossDistribution, loss_cells, loss_range

Array = NDArray[np.float64]

# dp-accounting's default, so that its users see the same ε.
DEFAULT_INTERVAL = 1e-4
# Histories with very wide losses get a coarser grid (and so a larger ε) instead of running out of memory.
_LARGEST_GRID = 2**21


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyProfile:
    """δ as a function of ε in one direction, and its inverse."""

    losses: Array
    # For each loss: the probabilities of it and all above, under the first neighbour and under the second.
    tail_first: Array
    tail_second: Array
    infinite: float

    @classmethod
    def of(cls, distribution: LossDistribution) -> "PrivacyProfile":
        losses = distribution.losses
        # Fourier transforms leave noise of about 1e-18 around 0. As an upper bound, mass below 0 counts as 0.
        mass = np.maximum(distribution.probabilities, 0.0)
        tail_first = np.cumsum(mass[::-1])[::-1]
        tail_second = np.cumsum((mass * np.exp(-np.maximum(losses, -700.0)))[::-1])[::-1]
        if not np.isfinite(tail_first[0]) or not math.isfinite(distribution.infinite):
            raise NumericalFailure("A privacy-loss distribution is not finite. Nothing was charged.")
        return cls(losses=losses, tail_first=tail_first, tail_second=tail_second, infinite=distribution.infinite)

    def delta(self, epsilon: Array | float) -> Array:
        """δ(ε) = Σ over losses above ε of probability · (1 − exp(ε − loss)), for any real ε."""
        asked = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))
        # Below the smallest loss every outcome counts, and exp(ε) falls towards 0 from there.
        index = np.searchsorted(self.losses, asked, side="right")
        inside = index < len(self.losses)
        at = np.minimum(index, len(self.losses) - 1)
        finite = self.tail_first[at] - np.exp(np.minimum(asked, 700.0)) * self.tail_second[at]
        return np.clip(np.where(inside, finite, 0.0) + self.infinite, 0.0, 1.0)

    def epsilon(self, delta: float) -> float:
        """The smallest ε ≥ 0 with δ(ε) ≤ delta, or infinity."""
        if self.infinite > delta:
            return math.inf
        # δ at every loss: what is above it counts.
        finite = self.tail_first[1:] - np.exp(np.minimum(self.losses[:-1], 700.0)) * self.tail_second[1:]
        above = np.flatnonzero(finite + self.infinite > delta)
        # δ(ε) crosses delta between the last loss at which it is above and the next one.
        tail = int(above[-1]) + 1 if above.size else 0
        if tail >= len(self.losses):
            return max(0.0, float(self.losses[-1]))
        excess = float(self.tail_first[tail]) + self.infinite - delta
        if excess <= 0 or self.tail_second[tail] <= 0:
            return max(0.0, float(self.losses[tail]))
        return max(0.0, math.log(excess) - math.log(float(self.tail_second[tail])))


def privacy_profile(history: History, direction: Direction, interval: float = DEFAULT_INTERVAL) -> PrivacyProfile:
    """δ(ε) of the history in one direction, on a grid of this interval or of a coarser one where losses are wide."""
    entries = canonical(history)
    interval = _affordable_interval(entries, interval)
    composed = continued(entries, direction, interval)
    if composed is not None and composed.size < 2 * _LARGEST_GRID:
        return PrivacyProfile.of(composed.distribution())
    while True:
        parts: Parts = [(loss_cells(kind, interval).distribution(direction), times) for kind, times in entries]
        if not parts:
            return _no_loss(interval)
        if len(parts) == 1 and parts[0][1] == 1:
            return PrivacyProfile.of(parts[0][0])
        first, last = window_of(parts)
        if last - first < _LARGEST_GRID:
            return PrivacyProfile.of(compose(parts, (first, last)))
        interval *= 2 ** math.ceil(math.log2((last - first + 1) / _LARGEST_GRID) + 0.01)


def _affordable_interval(entries: CanonicalHistory, wanted: float) -> float:
    """The wanted interval, or a coarser one if a single mechanism's losses would overflow the grid."""
    widths = [high - low for low, high in (loss_range(kind) for kind, _ in entries)]
    needed = max(widths, default=0.0) / _LARGEST_GRID
    return wanted if needed <= wanted else wanted * 2 ** math.ceil(math.log2(needed / wanted))


def _no_loss(interval: float) -> PrivacyProfile:
    return PrivacyProfile.of(LossDistribution(interval=interval, first=0, probabilities=np.ones(1), infinite=0.0))
