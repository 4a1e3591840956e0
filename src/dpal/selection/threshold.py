"""Threshold sampling: one bit for each record, by two public probabilities around a private quantile.

For a given cut no other rule with the same pure ε serves a linear aim better (docs/maths/selection.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from dpal.errors import InvalidArgument, NoSolution
from dpal.privacy import checks
from dpal.privacy.campaign_history import Released
from dpal.privacy.mechanisms import BernoulliSelection, Exponential
from dpal.randomness import Randomness
from dpal.selection.grid import Grid
from dpal.selection.selection import (
    MEAN_SCORE,
    NOBODY,
    Chosen,
    Positions,
    Selection,
    SelectionBudget,
    require_share,
)

# The ε of the private quantile that sets the threshold: plenty for thousands of records.
THRESHOLD_EPSILON = 0.05
# Beyond this ratio of probabilities a threshold selection gains next to nothing.
_LARGEST_CHOICE_EPSILON = 5.0
_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdSelection(Selection):
    """Takes a record with probability_high if its score reaches the threshold, otherwise with probability_low.

    The number taken is random. Of more than query_size a random surplus is retired; fewer are never topped up:
    both would otherwise reveal more about a record than its one bit.
    """

    name: ClassVar[str] = "threshold"
    choice_epsilon: float
    fraction_above: float
    threshold_epsilon: float
    probability_high: float
    probability_low: float

    def __post_init__(self) -> None:
        super(ThresholdSelection, self).__post_init__()
        checks.probability("fraction_above", self.fraction_above)

    @classmethod
    def plan(cls, budget: SelectionBudget) -> Sequence[Self]:
        """Ratios of probabilities such that a record taken by selection j has paid j shares of the selection's ε."""
        share = require_share(cls.name, budget)
        selections: list[Self] = []
        passed = 0.0
        for number, sizes in enumerate(budget.sizes, start=1):
            allowed = number * share - passed - number * _quantile_cost(budget)
            if allowed <= 0:
                raise NoSolution(
                    f"A selection ε of {budget.epsilon:g} over {len(budget.query_sizes)} selections does not pay for "
                    f"the threshold (ε {THRESHOLD_EPSILON} each). Use at least "
                    f"{2 * THRESHOLD_EPSILON * len(budget.query_sizes):g}, or the selection 'random'."
                )
            selection = cls.of(**sizes, choice_epsilon=cls._affordable_choice(budget, sizes, allowed), aim=budget.aim)
            if budget.accounting == "branch":
                passed += selection._passed_cost(budget.order)
            selections.append(selection)
        return selections

    @classmethod
    def of(cls, *, query_size: int, unlabelled: int, choice_epsilon: float, aim: str = MEAN_SCORE) -> Self:
        """Threshold sampling that takes query_size of the unlabelled in expectation."""
        fraction_above = mean_score_fraction(choice_epsilon) if aim == MEAN_SCORE else query_size / unlabelled
        growth = math.exp(choice_epsilon)
        low = query_size / (unlabelled * (fraction_above * growth + 1 - fraction_above))
        high = min(low * growth, 1 - (1 - low) / growth)
        if high < low * growth:
            # So many are wanted that 1 − high binds instead: keep the ratio there and the expected number.
            low = 1 - (1 - query_size / unlabelled) / (fraction_above / growth + 1 - fraction_above)
            high = 1 - (1 - low) / growth
        if not 0 < low <= high < 1:
            raise NoSolution(
                f"Threshold sampling cannot take {query_size:,} of {unlabelled:,} records with a choice ε of "
                f"{choice_epsilon:.3g}: nearly all are wanted. Use a smaller query or the selection 'random'."
            )
        return cls(
            query_size=query_size,
            unlabelled=unlabelled,
            choice_epsilon=choice_epsilon,
            fraction_above=fraction_above,
            threshold_epsilon=THRESHOLD_EPSILON,
            probability_high=high,
            probability_low=low,
        )

    @classmethod
    def _affordable_choice(cls, budget: SelectionBudget, sizes: dict[str, int], allowed: float) -> float:
        if budget.accounting == "basic":
            return budget.share - THRESHOLD_EPSILON
        if budget.accounting == "renyi":
            # One bit's curve is at most order·ε²/8; a bit of that size is charged to everyone in each selection.
            return math.sqrt(8 * max(budget.share - _quantile_cost(budget), 1e-6) / budget.order)
        low, high = 0.0, _LARGEST_CHOICE_EPSILON
        for _ in range(50):
            middle = (low + high) / 2
            try:
                trial = cls.of(**sizes, choice_epsilon=middle, aim=budget.aim)
                fits = trial._taken_cost(budget.order) <= allowed
            except NoSolution:
                fits = False
            low, high = (middle, high) if fits else (low, middle)
        return max(low, 1e-3)

    @property
    def released(self) -> Released:
        return Released(
            choice=BernoulliSelection(probability_high=self.probability_high, probability_low=self.probability_low),
            threshold=Exponential(epsilon=self.threshold_epsilon),
        )

    def lift(self) -> float:
        above, high, low = self.fraction_above, self.probability_high, self.probability_low
        mean = (low * (1 - above) ** 2 / 2 + high * above * (1 - above / 2)) / (low * (1 - above) + high * above)
        return 2 * mean - 1

    def costs(self, accounting: str, order: float) -> tuple[float, float, float]:
        if accounting != "branch":
            return super(ThresholdSelection, self).costs(accounting, order)
        quantile = order * self.threshold_epsilon**2 / 8
        return quantile, self._taken_cost(order), self._passed_cost(order)

    def _taken_cost(self, order: float) -> float:
        """What being taken costs at this order (docs/maths/branches.md), at least 0: a group never trains on credit."""
        high, low = self.probability_high, self.probability_low
        return max(0.0, (order * math.log(high) + (1 - order) * math.log(low)) / (order - 1))

    def _passed_cost(self, order: float) -> float:
        """What being passed over costs at this order."""
        high, low = self.probability_high, self.probability_low
        return max(0.0, (order * math.log1p(-low) + (1 - order) * math.log1p(-high)) / (order - 1))

    def require_planned_for(self, aim: str) -> None:
        """Probabilities and fraction must follow from the choice's ε."""
        planned = self.of(
            query_size=self.query_size, unlabelled=self.unlabelled, choice_epsilon=self.choice_epsilon, aim=aim
        )
        for parameter in fields(self):
            stated, true = getattr(self, parameter.name), getattr(planned, parameter.name)
            if not math.isclose(stated, true, rel_tol=1e-9):
                raise InvalidArgument(
                    f"{parameter.name} of a selection", stated, f"{true!r}, as its choice_epsilon gives"
                )

    def _choose(self, grid: Grid, randomness: Randomness) -> Chosen:
        steps = self.resolution
        cut = private_cut(grid, steps, self.fraction_above, Exponential(epsilon=self.threshold_epsilon), randomness)
        high, low = Fraction(self.probability_high), Fraction(self.probability_low)
        chunks: list[Positions] = []
        for start in range(0, len(grid), _CHUNK):
            above = grid[start : start + _CHUNK] >= cut
            taken = np.empty(len(above), dtype=bool)
            number_above = int(np.count_nonzero(above))
            taken[above] = randomness.coins(high, number_above)
            taken[~above] = randomness.coins(low, len(above) - number_above)
            chunks.append(np.flatnonzero(taken) + start)
        everyone, threshold = np.concatenate(chunks), float(cut)
        if len(everyone) <= self.query_size:
            return Chosen(to_label=everyone, retired=NOBODY, threshold=threshold)
        kept = np.zeros(len(everyone), dtype=bool)
        kept[randomness.subset(len(everyone), self.query_size)] = True
        return Chosen(to_label=everyone[kept], retired=everyone[~kept], threshold=threshold)


def mean_score_fraction(choice_epsilon: float) -> float:
    """The public fraction of scores above the threshold that serves the mean score of what is taken.

    For uniform scores the best is 1/(1 + exp(ε/2)). A rarer high probability costs a taken record more under branch
    accounting, which moves the best towards one half: ε/3 was the best of several under equal plans.
    """
    return 1 / (1 + math.exp(choice_epsilon / 3))


def _quantile_cost(budget: SelectionBudget) -> float:
    """What the released threshold costs, at the order that decides."""
    return THRESHOLD_EPSILON if budget.accounting == "basic" else budget.order * THRESHOLD_EPSILON**2 / 8


def private_cut(
    grid: Grid, grid_steps: int, fraction_above: float, mechanism: Exponential, randomness: Randomness
) -> int:
    """A step from 1 to grid_steps with about this fraction of the scores at or above it.

    The exponential mechanism on ranks: a record moves every rank by at most 1. Step 0 is not a candidate, so a blank
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
