"""Selections in blocks: the same records as from one array, whatever the blocks, their order and their repetition."""

from dataclasses import replace

import numpy as np
import pytest
from selections import seeded, threshold

from dpal.errors import InvalidArgument
from dpal.randomness import IdColumn, RecordCoins
from dpal.selection import CutSelection, RandomSelection
from dpal.selection.by_blocks import BlockSelection, require_different
from dpal.selection.selection import Chosen

SCORES = np.random.default_rng(5).beta(2, 3, 5000)
IDS = np.asarray([f"scan-{number}" for number in range(5000)])
KINDS = [
    CutSelection(query_size=300, unlabelled=5000, cut_epsilon=0.5, wanted=290),
    threshold(300, high=0.2, low=0.02, epsilon=0.05, above=0.45),
    threshold(600, high=0.2, low=0.02, epsilon=0.05, above=0.45),
    RandomSelection(query_size=300, unlabelled=5000),
]
EVERY_KIND = pytest.mark.parametrize("selection", KINDS, ids=lambda kind: f"{kind.name}-{kind.query_size}")


def in_blocks(selection: BlockSelection, blocks: list[np.ndarray], coins_by_block=None) -> tuple[set[str], set[str]]:
    """The two passes, over blocks of places in any order."""
    randomness = seeded()
    coins = randomness.record_coins()
    grids = {number: selection.on_its_grid(SCORES[block], 1.0) for number, block in enumerate(blocks)}
    columns = {number: IdColumn.of(IDS[block]) for number, block in enumerate(blocks)}
    of_block = coins_by_block or (lambda number: coins)
    counts = np.zeros(selection.candidates, dtype=np.int64)
    for number in grids:
        counts += selection.counts(grids[number], columns[number], of_block(number))
    bound = selection.bound(counts, len(SCORES), randomness)
    taken = []
    for number, block in enumerate(blocks):
        mask = selection.taken(grids[number], columns[number], of_block(number), bound)
        assert selection.may_take(grids[number], bound) or not mask.any()
        taken.append(block[mask])
    places = np.concatenate(taken)
    chosen = selection.settled(places, IdColumn.of(IDS[places]), coins, bound)
    return set(IDS[chosen.to_label]), set(IDS[chosen.retired])


@EVERY_KIND
def test_blocks_in_any_order_choose_the_same(selection: BlockSelection) -> None:
    whole = selection.choose(SCORES, highest=1.0, randomness=seeded(), ids=IDS)
    places = np.arange(5000)
    for blocks in (
        [places],
        np.array_split(places, 7),
        np.array_split(np.random.default_rng(0).permutation(places), 13),
    ):
        assert in_blocks(selection, list(blocks)) == (set(whole.to_label), set(whole.retired))


@EVERY_KIND
def test_coins_that_differ_by_block_are_noticed(selection: BlockSelection) -> None:
    # The twin: each block draws for itself, as a stream of random bits would.
    blocks = list(np.array_split(np.arange(5000), 7))
    whole = selection.choose(SCORES, highest=1.0, randomness=seeded(), ids=IDS)
    planted = in_blocks(selection, blocks, lambda number: RecordCoins(bytes([number]) * 32))
    assert planted != (set(whole.to_label), set(whole.retired))


def test_a_block_below_the_cut_is_not_read_again() -> None:
    cut = KINDS[0]
    assert not cut.may_take(np.asarray([3, 4], dtype=np.uint16), 5 * 4096)
    assert cut.may_take(np.asarray([3, 5], dtype=np.uint16), 5 * 4096 + 4000)
    assert not cut.may_take(np.empty(0, dtype=np.uint16), 4096)


def test_repeated_ids_are_refused() -> None:
    require_different(IdColumn.of(IDS))
    with pytest.raises(InvalidArgument, match="2 repetitions"):
        require_different(IdColumn.of(np.append(IDS, IDS[:2])))


class Third(RandomSelection):
    def _choose(self, grid, randomness) -> Chosen:
        return Chosen(to_label=np.arange(0, len(grid), 3), retired=np.empty(0, dtype=np.int64))


def test_a_kind_of_ones_own_that_chooses_itself_is_asked() -> None:
    selection = Third(query_size=4, unlabelled=12)
    assert selection.choose(SCORES[:12], highest=1.0, randomness=seeded()).to_label.tolist() == [0, 3, 6, 9]
    assert len(replace(KINDS[3], query_size=5).choose(SCORES, highest=1.0, randomness=seeded()).to_label) == 5
