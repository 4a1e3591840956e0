"""What private selections are compared with: any records, and the highest scores without privacy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from dpal.privacy.campaign_history import Released
from dpal.randomness import Randomness
from dpal.selection.grid import Grid
from dpal.selection.selection import NOBODY, PROMISES, Chosen, Selection, SelectionBudget, top


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeSelection(Selection):
    """A selection that needs no part of ε: it has no parameters, and releases nothing that is accounted for."""

    spends_epsilon: ClassVar[bool] = False
    promises: ClassVar[tuple[str, ...]] = PROMISES

    @classmethod
    def plan(cls, budget: SelectionBudget) -> Sequence[Self]:
        return [cls(**sizes) for sizes in budget.sizes]

    @property
    def released(self) -> Released:
        return Released(choice=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomSelection(FreeSelection):
    """Any records, each as likely as any other. It never looks at a score, so it costs nothing."""

    name: ClassVar[str] = "random"
    reads_scores: ClassVar[bool] = False

    def lift(self) -> float:
        return 0.0

    def _choose(self, grid: Grid, randomness: Randomness) -> Chosen:
        self._require_enough(len(grid))
        return Chosen(to_label=randomness.subset(len(grid), self.query_size), retired=NOBODY)


@dataclass(frozen=True, slots=True, kw_only=True)
class HighestScores(FreeSelection):
    """The highest scores. NOT private, and every output says so: an upper bound for simulations."""

    name: ClassVar[str] = "none"
    is_private: ClassVar[bool] = False

    def lift(self) -> float:
        return 1 - self.query_size / self.unlabelled

    def _choose(self, grid: Grid, randomness: Randomness) -> Chosen:
        self._require_enough(len(grid))
        return Chosen(to_label=top(grid, self.query_size, randomness), retired=NOBODY)
