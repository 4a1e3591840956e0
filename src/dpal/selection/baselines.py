"""What private selections are compared with: any records, and the highest scores without privacy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpal.privacy.campaign_history import Released
from dpal.randomness import IdColumn, Randomness, RecordCoins
from dpal.selection.by_blocks import BlockSelection, Counts
from dpal.selection.grid import Grid
from dpal.selection.selection import NOBODY, PROMISES, Chosen, Positions, Selection, SelectionBudget, top

# A first look at each record's place in a random order, so that a pass over the pool finds the first of them.
_BITS = 16


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
class RandomSelection(FreeSelection, BlockSelection):
    """Any records, each as likely as any other. It never looks at a score, so it costs nothing."""

    name: ClassVar[str] = "random"
    reads_scores: ClassVar[bool] = False

    def lift(self) -> float:
        return 0.0

    @property
    def candidates(self) -> int:
        return 1 << _BITS

    def counts(self, grid: Grid, ids: IdColumn, coins: RecordCoins) -> Counts:
        del grid
        return np.bincount(_first_bits(coins, ids), minlength=self.candidates)

    def bound(self, counts: Counts, records: int, randomness: Randomness) -> int:
        del randomness
        self._require_enough(records)
        # In the order of the coins, the first query_size are among those up to here.
        return int(np.searchsorted(counts.cumsum(), self.query_size))

    def taken(self, grid: Grid, ids: IdColumn, coins: RecordCoins, bound: int) -> NDArray[np.bool_]:
        del grid
        return _first_bits(coins, ids) <= bound

    def settled(self, taken: Positions, ids: IdColumn, coins: RecordCoins, bound: int) -> Chosen:
        del bound
        return Chosen(to_label=taken[coins.subset(ids, self.query_size)], retired=NOBODY)


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


def _first_bits(coins: RecordCoins, ids: IdColumn) -> NDArray[np.int64]:
    return (coins.order(ids)[:, 0] >> np.uint64(64 - _BITS)).astype(np.int64)
