"""Threshold sampling: one bit for each record, by two public probabilities around a private quantile.

For a given cut no other rule with the same pure ε serves a linear aim better (docs/maths/selection.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpal.errors import InvalidArgument, NoSolution
from dpal.privacy import checks
from dpal.privacy.campaign_history import Released
from dpal.privacy.mechanisms import BernoulliSelection, Exponential
from dpal.randomness import IdColumn, Randomness, RecordCoins
from dpal.selection.by_blocks import BlockSelection, Counts
from dpal.selection.grid import Grid
from dpal.selection.selection import (
    MEAN_SCORE,
    NOBODY,
    Chosen,
    Positions,
    SelectionBudget,
    require_share,
)

# The ε of the private quantile that sets the threshold: plenty for thousands of records.
THRESHOLD_EPSILON = 0.05
# Beyond this ratio of probabilities a threshold selection gains next to nothing.
_LARGEST_CHOICE_EPSILON = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdSelection(BlockSelection):
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
                enough = 2 * THRESHOLD_EPSILON * len(budget.query_sizes)
                raise NoSolution(
                    f"selection_epsilon is {budget.epsilon:g}, too little for {len(budget.query_sizes)} threshold "
                    f"selections. Use {enough:g} or more (with a target ε above it), fewer selections, or the "
                    "selection 'random', which spends no ε."
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

    @property
    def candidates(self) -> int:
        return self.resolution + 1

    def counts(self, grid: Grid, ids: IdColumn, coins: RecordCoins) -> Counts:
        del ids, coins
        return np.bincount(grid, minlength=self.candidates)

    def bound(self, counts: Counts, records: int, randomness: Randomness) -> int:
        wanted = round(self.fraction_above * records)
        return private_step(counts, wanted, Exponential(epsilon=self.threshold_epsilon), randomness)

    def taken(self, grid: Grid, ids: IdColumn, coins: RecordCoins, bound: int) -> NDArray[np.bool_]:
        above, taken = grid >= bound, np.empty(len(grid), dtype=np.bool_)
        for places, probability in ((above, self.probability_high), (~above, self.probability_low)):
            taken[places] = coins.coins(Fraction(probability), ids[places])
        return taken

    def settled(self, taken: Positions, ids: IdColumn, coins: RecordCoins, bound: int) -> Chosen:
        if len(taken) <= self.query_size:
            return Chosen(to_label=taken, retired=NOBODY, threshold=float(bound))
        kept = np.zeros(len(taken), dtype=np.bool_)
        kept[coins.subset(ids, self.query_size)] = True
        return Chosen(to_label=taken[kept], retired=taken[~kept], threshold=float(bound))


def mean_score_fraction(choice_epsilon: float) -> float:
    """The public fraction of scores above the threshold that serves the mean score of what is taken.

    For uniform scores the best is 1/(1 + exp(ε/2)). A rarer high probability costs a taken record more under branch
    accounting, which moves the best towards one half: ε/3 was the best of several under equal plans.
    """
    return 1 / (1 + math.exp(choice_epsilon / 3))


def _quantile_cost(budget: SelectionBudget) -> float:
    """What the released threshold costs, at the order that decides."""
    return THRESHOLD_EPSILON if budget.accounting == "basic" else budget.order * THRESHOLD_EPSILON**2 / 8


def private_step(counts: Counts, wanted: int, mechanism: Exponential, randomness: Randomness) -> int:
    """A step from 1 up with about the wanted number of scores at or above it, from the number of scores on each step.

    The exponential mechanism on ranks: a record moves every rank by at most 1. Step 0 is not a candidate, so a blank
    is always below the cut.
    """
    at_or_above = counts[::-1].cumsum()[::-1]
    rank_errors = np.abs(at_or_above[1:] - wanted)
    # Weights exp(ε · utility / 2), the utility being minus the rank's error, of sensitivity 1.
    return 1 + int(randomness.exponential_picks(rank_errors, Fraction(mechanism.epsilon) / 2, 1)[0])
