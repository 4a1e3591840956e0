"""Kinds of selection that choose block by block: one pass counts, one number is chosen, and one pass takes.

A pool in memory is a single block, and a pool of a billion records thousands of them on many machines: the same code,
and the same records, whatever the blocks and their order, because every coin belongs to a record's id.
"""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpal.errors import InvalidArgument
from dpal.randomness import IdColumn, Places, Randomness, RecordCoins
from dpal.selection.grid import Grid
from dpal.selection.selection import Chosen, Positions, Selection

Counts = NDArray[np.int64]
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSelection(Selection):
    """A selection whose choice of a record depends on that record, its coins and one number for the whole pool."""

    def on_its_grid(self, scores: NDArray[np.floating], largest: float) -> Grid:
        """The scores of a block in steps of the grid."""
        return self._on_grid(scores, largest)

    @property
    @abstractmethod
    def candidates(self) -> int:
        """How many candidates for the bound are counted."""

    @abstractmethod
    def counts(self, grid: Grid, ids: IdColumn, coins: RecordCoins) -> Counts:
        """How many records of a block are at each candidate for the bound. Counts of blocks are added up."""

    @abstractmethod
    def bound(self, counts: Counts, records: int, randomness: Randomness) -> int:
        """The number that decides, from the whole pool's counts."""

    @abstractmethod
    def taken(self, grid: Grid, ids: IdColumn, coins: RecordCoins, bound: int) -> NDArray[np.bool_]:
        """Which records of a block are taken."""

    def may_take(self, grid: Grid, bound: int) -> bool:
        """Whether a block with these scores can have records that are taken. If not, it is not read again."""
        del grid, bound
        return True

    @abstractmethod
    def settled(self, taken: Positions, ids: IdColumn, coins: RecordCoins, bound: int) -> Chosen:
        """The choice, from the places and ids of all records that are taken; a threshold in steps of the grid."""

    @property
    def has_own_choice(self) -> bool:
        """Whether this is somebody's own kind, derived from one of dpal's, that does not choose by counts and coins."""
        return type(self)._choose is not BlockSelection._choose

    def _choose_by_id(self, grid: Grid, ids: IdColumn | Places, randomness: Randomness) -> Chosen:
        if self.has_own_choice:
            return self._choose(grid, randomness)
        if isinstance(ids, IdColumn):
            require_different(ids)
        coins = randomness.record_coins()
        counts = np.zeros(self.candidates, dtype=np.int64)
        for chunk in _chunks(len(grid)):
            counts += self.counts(grid[chunk], ids[chunk], coins)
        bound = self.bound(counts, len(grid), randomness)
        taken = np.concatenate(
            [
                np.flatnonzero(self.taken(grid[chunk], ids[chunk], coins, bound)) + chunk.start
                for chunk in _chunks(len(grid))
            ]
        )
        return self.settled(taken, ids[taken], coins, bound)

    def _choose(self, grid: Grid, randomness: Randomness) -> Chosen:
        return self._choose_by_id(grid, Places(len(grid)), randomness)


def require_different(ids: IdColumn) -> None:
    """Refuse an id that occurs twice: two records would share their coins."""
    # Any key will do: equal ids have equal tags, and others differ.
    order = RecordCoins(bytes(32)).order(ids)
    order = order[np.lexsort((order[:, 1], order[:, 0]))]
    twice = int((order[1:] == order[:-1]).all(axis=1).sum())
    if twice:
        raise InvalidArgument("ids", f"not all different ({twice:,} repetitions)", "a different one for each record")


def _chunks(count: int) -> list[slice]:
    return [slice(start, start + _CHUNK) for start in range(0, count, _CHUNK)]
