"""Threshold sampling: one bit for each record, by two public probabilities around a private quantile.

For a given cut no other rule with the same pure ε serves a linear aim better (docs/maths/selection.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpal.privacy import checks
from dpal.privacy.campaign_history import Selection
from dpal.privacy.mechanisms import BernoulliSelection, Exponential
from dpal.randomness import Randomness
from dpal.selection.grid import Grid
from dpal.selection.mechanisms import NOBODY, Chosen, Positions, SelectionMechanism

_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdSampling(SelectionMechanism):
    """Takes a record with probability_high if its score reaches the threshold, else with probability_low.

    The number taken is random. Of more than query_size a random surplus is retired; fewer are never topped up:
    both would otherwise tell more about a record than its one bit.
    """

    name: ClassVar[str] = "threshold"
    choice: BernoulliSelection
    threshold: Exponential
    fraction_above: float

    def __post_init__(self) -> None:
        super(ThresholdSampling, self).__post_init__()
        checks.probability("fraction_above", self.fraction_above)

    @property
    def released(self) -> Selection:
        return Selection(choice=self.choice, threshold=self.threshold)

    def _choose(self, grid: Grid, randomness: Randomness) -> Chosen:
        cut = private_cut(grid, self.grid_steps, self.fraction_above, self.threshold, randomness)
        high, low = Fraction(self.choice.probability_high), Fraction(self.choice.probability_low)
        parts: list[Positions] = []
        for start in range(0, len(grid), _CHUNK):
            above = grid[start : start + _CHUNK] >= cut
            taken = np.empty(len(above), dtype=bool)
            number_above = int(np.count_nonzero(above))
            taken[above] = randomness.coins(high, number_above)
            taken[~above] = randomness.coins(low, len(above) - number_above)
            parts.append(np.flatnonzero(taken) + start)
        everyone, threshold = np.concatenate(parts), cut * self.highest / self.grid_steps
        if len(everyone) <= self.query_size:
            return Chosen(to_label=everyone, retired=NOBODY, threshold=threshold)
        kept = np.zeros(len(everyone), dtype=bool)
        kept[randomness.subset(len(everyone), self.query_size)] = True
        return Chosen(to_label=everyone[kept], retired=everyone[~kept], threshold=threshold)


def private_cut(
    grid: Grid, grid_steps: int, fraction_above: float, mechanism: Exponential, randomness: Randomness
) -> int:
    """A step from 1 to grid_steps with about this fraction of the scores at or above it.

    The exponential mechanism on ranks: a record moves every rank by at most 1. Step 0 is no candidate, so a blank
    is always below the cut.
    """
    counts = np.zeros(grid_steps + 1, dtype=np.int64)
    for start in range(0, len(grid), _CHUNK):
        counts += np.bincount(grid[start : start + _CHUNK], minlength=grid_steps + 1)
    at_or_above = counts[::-1].cumsum()[::-1]
    wanted = round(fraction_above * len(grid))
    rank_errors = np.abs(at_or_above[1:] - wanted)
    # Weights exp(ε · utility / 2), the utility being minus the rank's error, of sensitivity 1.
    return 1 + int(randomness.exponential_picks(rank_errors, Fraction(mechanism.epsilon) / 2, 1)[0])
