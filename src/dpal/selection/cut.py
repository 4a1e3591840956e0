"""The private cut: asks for every record whose score reaches a cut that was chosen privately.

Only for selections that stay inside: the choice of a record depends on that record, the released models and the
released cut, and on no other record, so it needs no noise of its own (docs/maths/cut.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpal.errors import InvalidArgument
from dpal.privacy.campaign_history import Released
from dpal.privacy.mechanisms import MOST_GRID_STEPS, Exponential
from dpal.randomness import IdColumn, Randomness, RecordCoins
from dpal.selection.by_blocks import BlockSelection, Counts
from dpal.selection.grid import Grid, Scores, on_grid
from dpal.selection.selection import INSIDE, NOBODY, Chosen, Positions, SelectionBudget, require_share

# Scores are rounded to few steps: the rank error grows with the logarithm of the number of candidates, and a difference
# of half a percent of the range says nothing about what is worth a label.
GRID_STEPS = 255
# Records on the same step are put in order by coins of their own, this fine.
COIN_LEVELS = 4096
# Finer in pools so large that about ten records would share each candidate, up to what fits in memory.
_RECORDS_PER_CANDIDATE = 10
_MOST_COIN_LEVELS = 1 << 16
# The cut aims below the query size, so that more are asked for with at most this probability where scores are spread.
OVERRUN_PROBABILITY = 0.05
# How far below, as a share of the query size, where the budget allows it.
_MARGIN = 0.04
# A precise cut costs next to nothing down to here.
_PLENTY = 0.05
# Candidates fit in memory as one count each.
_MOST_CANDIDATES = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class CutSelection(BlockSelection):
    """Asks for every unlabelled record at or above the cut; `wanted` is the number of them that the cut aims at.

    The number asked for is random. If it is more than planned, all of them are asked for; if it is less, nobody else
    is: either would make one record's membership depend on another's. `wanted` is planned, and never follows from the
    real number of records.
    """

    name: ClassVar[str] = "cut"
    promises: ClassVar[tuple[str, ...]] = (INSIDE,)
    cut_epsilon: float
    wanted: int
    grid_steps: int = GRID_STEPS
    coin_levels: int = COIN_LEVELS

    def __post_init__(self) -> None:
        super(CutSelection, self).__post_init__()
        if not 1 <= self.wanted <= self.query_size:
            allowed = f"from 1 to the query size of {self.query_size:,}"
            raise InvalidArgument("wanted of a selection", self.wanted, allowed)
        if not (1 <= self.grid_steps <= MOST_GRID_STEPS and self.coin_levels >= 1):
            raise InvalidArgument("grid_steps of a selection", self.grid_steps, f"from 1 to {MOST_GRID_STEPS:,}")
        if self.grid_steps * self.coin_levels > _MOST_CANDIDATES:
            allowed = f"at most {_MOST_CANDIDATES // self.grid_steps:,} with {self.grid_steps:,} grid steps"
            raise InvalidArgument("coin_levels of a selection", self.coin_levels, allowed)

    @classmethod
    def plan(cls, budget: SelectionBudget) -> Sequence[Self]:
        """Cuts precise enough to miss the query size by little, as far as the selections' share of ε goes."""
        share = require_share(cls.name, budget)
        # What costs the share: a pure ε, or a curve of order·ε²/8 at the order that decides.
        affordable = share if budget.accounting == "basic" else math.sqrt(8 * share / budget.order)
        return [cls.of(**sizes, affordable=affordable) for sizes in budget.sizes]

    @classmethod
    def of(cls, *, query_size: int, unlabelled: int, affordable: float) -> Self:
        """A cut that aims so far below the query size that it is rarely exceeded, at an ε of at most `affordable`."""
        precise = 2 * math.log(1 / (2 * OVERRUN_PROBABILITY)) / (_MARGIN * query_size)
        epsilon = min(max(precise, _PLENTY), affordable)
        margin = math.ceil(2 * math.log(1 / (2 * OVERRUN_PROBABILITY)) / epsilon)
        wanted = max(query_size - margin, (query_size + 1) // 2)
        crowd = unlabelled / (GRID_STEPS * _RECORDS_PER_CANDIDATE)
        levels = min(max(COIN_LEVELS, 1 << math.ceil(math.log2(max(crowd, 1)))), _MOST_COIN_LEVELS)
        return cls(query_size=query_size, unlabelled=unlabelled, cut_epsilon=epsilon, wanted=wanted, coin_levels=levels)

    @property
    def released(self) -> Released:
        """The cut alone: exponential mechanism on ranks, of which a record moves each by at most 1."""
        return Released(choice=None, threshold=Exponential(epsilon=self.cut_epsilon))

    @property
    def overrun_probability(self) -> float:
        """How likely more than query_size are asked for, where scores are spread around the cut."""
        return 0.5 * math.exp(-self.cut_epsilon * (self.query_size - self.wanted) / 2)

    def surely_at_most(self, probability: float = 1e-3) -> int:
        """A number that is exceeded with at most this probability, whatever the scores.

        The exponential mechanism's own bound. It leaves out ties of both score and coin, of which there are few.
        """
        reach = 2 / self.cut_epsilon * math.log((self.grid_steps * self.coin_levels + 1) / probability)
        return min(self.unlabelled, self.wanted + math.ceil(reach))

    @property
    def expected_number(self) -> int:
        return self.wanted

    def largest_number(self, pool_size: int) -> int:
        # Not what was planned to be unlabelled: where an earlier cut fell short, more are left.
        return pool_size

    @property
    def smallest_pool(self) -> int:
        # Even when nobody is left a cut is released: that none was would tell that everybody has been asked.
        return 1

    @property
    def resolution(self) -> int:
        return self.grid_steps

    def lift(self) -> float:
        return 1 - self.wanted / self.unlabelled

    def _on_grid(self, scores: Scores, largest: float) -> Grid:
        # Rounded up: only a blank, which has no score at all, is on step 0 and below every cut.
        return on_grid(scores, highest=largest, steps=self.grid_steps, round_up=True)

    @property
    def candidates(self) -> int:
        return self.grid_steps * self.coin_levels

    def counts(self, grid: Grid, ids: IdColumn, coins: RecordCoins) -> Counts:
        # From just above a blank: what has no score is at no candidate, and draws no coin.
        scored = np.flatnonzero(grid)
        above = grid[scored].astype(np.int64) - 1
        heights = above * self.coin_levels + coins.integers(self.coin_levels, ids[scored])
        return np.bincount(heights, minlength=self.candidates)

    def bound(self, counts: Counts, records: int, randomness: Randomness) -> int:
        # Up to "nobody", which is above every record. How many records there are has no part in it.
        del records
        return self.coin_levels + self._private_rank(counts, randomness)

    def taken(self, grid: Grid, ids: IdColumn, coins: RecordCoins, bound: int) -> NDArray[np.bool_]:
        step, level = divmod(bound, self.coin_levels)
        taken = grid > step
        # Only on the cut's own step do coins decide.
        ties = np.flatnonzero(grid == step)
        taken[ties] = coins.integers(self.coin_levels, ids[ties]) >= level
        return taken

    def may_take(self, grid: Grid, bound: int) -> bool:
        return int(grid.max(initial=0)) >= bound // self.coin_levels

    def settled(self, taken: Positions, ids: IdColumn, coins: RecordCoins, bound: int) -> Chosen:
        del ids, coins
        return Chosen(to_label=taken, retired=NOBODY, threshold=bound / self.coin_levels)

    def _private_rank(self, counts: NDArray[np.int64], randomness: Randomness) -> int:
        """A position with about `wanted` at or above it, by weights exp(ε · utility / 2) of sensitivity 1."""
        at_or_above = np.append(counts[::-1].cumsum()[::-1], 0)
        rank_errors = np.abs(at_or_above - self.wanted)
        return int(randomness.exponential_picks(rank_errors, Fraction(self.cut_epsilon) / 2, 1)[0])
