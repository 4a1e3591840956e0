"""The one-shot exponential mechanism: records one after the other, without replacement, by exponential weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from dpal.errors import InvalidArgument
from dpal.privacy.campaign_history import Released
from dpal.privacy.mechanisms import PureDP
from dpal.privacy.one_shot import one_shot_epsilon, weight_epsilon_for
from dpal.randomness import Randomness
from dpal.selection.grid import Grid
from dpal.selection.noisy_scores import lift_of_noise
from dpal.selection.selection import NOBODY, Chosen, Selection, SelectionBudget, require_share


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialSelection(Selection):
    """Weights exp(weight_epsilon · score / highest): the same distribution as the highest scores after Gumbel noise."""

    name: ClassVar[str] = "exponential"
    weight_epsilon: float

    @classmethod
    def plan(cls, budget: SelectionBudget) -> Sequence[Self]:
        share = require_share(cls.name, budget)
        return [cls(**sizes, weight_epsilon=weight_epsilon_for(share, **sizes)) for sizes in budget.sizes]

    @property
    def released(self) -> Released:
        return Released(choice=PureDP(epsilon=one_shot_epsilon(self.weight_epsilon, self.unlabelled, self.query_size)))

    def lift(self) -> float:
        def survival(x: np.ndarray) -> np.ndarray:
            return -np.expm1(-np.exp(np.minimum(-x * self.weight_epsilon, 700.0)))

        return lift_of_noise(self.query_size / self.unlabelled, survival)

    @property
    def smallest_pool(self) -> int:
        return self.unlabelled  # the ε was computed for a pool of at least this size

    def largest_score(self, highest: float, clip: float | None) -> float:
        return highest if clip is None else clip

    def _choose(self, grid: Grid, randomness: Randomness) -> Chosen:
        if len(grid) < self.unlabelled:
            allowed = f"at least {self.unlabelled:,}, for which the mechanism's ε was computed"
            raise InvalidArgument("the number of scores", len(grid), allowed)
        self._require_enough(len(grid))
        steps = self.resolution
        picks = randomness.exponential_picks(
            steps - grid.astype(np.int64), Fraction(self.weight_epsilon) / steps, self.query_size
        )
        return Chosen(to_label=np.sort(picks), retired=NOBODY)
