"""The private cut: whom it asks for, how many, and what it refuses."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
from selections import seeded, threshold
from statistics_helper import FALSE_FAILURE, rate_is

import dpal
from dpal.errors import InvalidArgument
from dpal.planning.certification import read_plan
from dpal.privacy.campaign_history import Released
from dpal.privacy.mechanisms import Exponential
from dpal.selection import CutSelection, by_blocks
from dpal.selection.recorded import RecordedSelection
from dpal.selection.registry import selection_from_json
from dpal.selection.selection import INSIDE, RELEASED, require_promise

SPREAD = np.random.default_rng(5).beta(2, 3, 20_000)


def cut(query_size: int = 500, *, wanted: int | None = None, epsilon: float = 0.5, **options) -> CutSelection:
    chosen = {"query_size": query_size, "unlabelled": 20_000, "cut_epsilon": epsilon, "wanted": wanted or query_size}
    return CutSelection(**(chosen | options))


def test_everyone_at_or_above_the_cut_is_asked_and_nobody_else() -> None:
    # With one coin level the cut is in whole steps, and scores alone decide.
    selection = cut(grid_steps=100, coin_levels=1, epsilon=2.0)
    chosen = selection.choose(SPREAD, highest=1.0, randomness=seeded())
    assert chosen.to_label.tolist() == np.flatnonzero(np.ceil(SPREAD * 100) >= round(chosen.threshold * 100)).tolist()
    assert len(chosen.retired) == 0
    fine = cut().choose(SPREAD, highest=1.0, randomness=seeded())
    assert SPREAD[fine.to_label].min() >= fine.threshold - 2 / 255 - 1e-9
    assert np.mean(fine.threshold <= SPREAD) == pytest.approx(500 / 20_000, abs=0.002)


def test_equal_scores_are_split_by_coins() -> None:
    saturated = np.concatenate([np.ones(2000), np.random.default_rng(1).uniform(0, 0.5, 3000)])
    for seed in range(5):
        chosen = cut(100).choose(saturated, highest=1.0, randomness=seeded(seed))
        assert 60 <= len(chosen.to_label) <= 140  # a rank error of 40 has a weight of exp(−10)
        assert chosen.to_label.max() < 2000
    # Without coins it could only be all of them, or nobody.
    blunt = cut(100, coin_levels=1).choose(saturated, highest=1.0, randomness=seeded())
    assert len(blunt.to_label) in (0, 2000)
    # Everybody has the same chance, whatever its place.
    asked = np.zeros(2000, dtype=int)
    for seed in range(100):
        chosen = cut(100, coin_levels=64).choose(saturated, highest=1.0, randomness=seeded(seed))
        asked[chosen.to_label] += 1
    assert rate_is(int(asked[:1000].sum()), int(asked.sum()), 0.5)


def test_nobody_is_a_candidate() -> None:
    # All at the top without coins: nobody is far better than 5,000 instead of 1.
    chosen = cut(1, coin_levels=1, epsilon=1.0).choose(np.ones(5000), highest=1.0, randomness=seeded())
    assert len(chosen.to_label) == 0
    assert chosen.threshold > 1


@pytest.mark.parametrize("score", [0.0, -1.0, float("nan"), float("inf"), -float("inf")])
def test_a_blank_and_scores_that_are_not_finite_are_never_asked_for(score: float) -> None:
    scores = np.concatenate([np.full(500, score), np.full(5, 1e-300), np.ones(5)])
    for seed in range(20):
        # So many are wanted that the lowest cut is the best one.
        chosen = cut(500, epsilon=1.0).choose(scores, highest=1.0, randomness=seeded(seed))
        assert chosen.to_label.min(initial=500) >= 500
        assert chosen.threshold >= 1 / 255
    # Everything above 0 is above the lowest cut, however small.
    low = cut(500, epsilon=50.0).choose(scores, highest=1.0, randomness=seeded())
    assert len(low.to_label) >= 5


class Listening(CutSelection):
    """Remembers what the private choice of the cut was given."""

    def _private_rank(self, counts, randomness):
        heard.append(int(np.abs(np.append(counts[::-1].cumsum()[::-1], 0) - self.wanted)[-1]))
        return super()._private_rank(counts, randomness)


heard: list[int] = []


def test_the_wanted_number_is_planned_and_does_not_follow_the_records() -> None:
    heard.clear()
    selection = Listening(query_size=50, unlabelled=20_000, cut_epsilon=1.0, wanted=40)
    sizes = []
    for count in (1, 100, 5000, 20_000, 30_000):
        chosen = selection.choose(np.random.default_rng(2).uniform(size=count), highest=1.0, randomness=seeded())
        sizes.append(len(chosen.to_label))
    # "Nobody" is wrong by the wanted number, whatever the number of records.
    assert heard == [40] * 5
    assert sizes[0] <= 1 and all(abs(size - 40) <= 20 for size in sizes[1:])
    # Blanks may come and go: they are in no rank, so with the same coins for the others the cut is the same.
    scores = np.random.default_rng(2).uniform(0.1, 1, 300)
    alone = selection.choose(scores, highest=1.0, randomness=seeded())
    with_blanks = selection.choose(np.append(scores, np.zeros(64)), highest=1.0, randomness=seeded())
    assert set(alone.to_label) <= set(range(300)) and set(with_blanks.to_label) <= set(range(300))


def test_chunks_and_an_array_ask_for_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = cut().choose(SPREAD, highest=1.0, randomness=seeded())
    chunks = cut().choose(iter(np.array_split(SPREAD, 7)), highest=1.0, randomness=seeded())
    assert chunks.to_label.tolist() == whole.to_label.tolist() and chunks.threshold == whole.threshold
    # Its own chunks bound memory, and change nothing.
    monkeypatch.setattr(by_blocks, "_CHUNK", 333)
    pieces = cut().choose(SPREAD, highest=1.0, randomness=seeded())
    assert pieces.to_label.tolist() == whole.to_label.tolist() and pieces.threshold == whole.threshold


@pytest.mark.parametrize(
    ("query_size", "pool", "draws"), [(300, 20_000, 250), (1000, 30_000, 250), (10_000, 50_000, 40)]
)
def test_planned_cuts_keep_within_the_query_and_fall_short_by_little(query_size: int, pool: int, draws: int) -> None:
    plan = dpal.plan(target_epsilon=8, pool_size=pool, query_sizes=(query_size,), accountant="rdp", epochs=3)
    (selection,) = plan.selections
    assert isinstance(selection, CutSelection)
    assert selection.overrun_probability <= 0.05 + 1e-12
    scores = np.random.default_rng(3).beta(2, 3, selection.unlabelled)
    asked = np.array(
        [len(selection.choose(scores, highest=1.0, randomness=seeded(seed)).to_label) for seed in range(draws)]
    )
    # One-sided: so many overruns are likely enough for the stated probability.
    overruns = int((asked > query_size).sum())
    assert binom.sf(overruns - 1, draws, selection.overrun_probability) >= FALSE_FAILURE
    # About 4.1% is expected of the small ones: this mean is five standard errors below the limit.
    assert np.maximum(0, 1 - asked / query_size).mean() < 0.05
    assert asked.max() <= selection.surely_at_most(1e-6)


def test_a_cut_that_aims_at_the_query_itself_would_overrun_half_of_the_time() -> None:
    # The twin of the test above: without the margin the stated probability must be rejected.
    planned = CutSelection.of(query_size=300, unlabelled=20_000, affordable=1.0)
    assert planned.wanted < 300 and planned.overrun_probability <= 0.05
    careless = replace(planned, wanted=300)
    draws = [len(careless.choose(SPREAD, highest=1.0, randomness=seeded(seed)).to_label) for seed in range(60)]
    assert binom.sf(sum(size > 300 for size in draws) - 1, 60, planned.overrun_probability) < FALSE_FAILURE


@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.384, 0.8, 2.3, 5.0])
@pytest.mark.parametrize("query_size", [1, 7, 300, 10_000])
def test_the_margin_keeps_the_stated_probability(query_size: int, epsilon: float) -> None:
    selection = CutSelection.of(query_size=query_size, unlabelled=20_000, affordable=epsilon)
    assert selection.cut_epsilon <= epsilon
    at_least_half = selection.wanted == (query_size + 1) // 2
    assert selection.overrun_probability <= 0.05 + 1e-12 or at_least_half
    # P(rank error above the margin), for weights exp(−ε·error/2) and one candidate per rank.
    ratio = np.exp(-selection.cut_epsilon / 2)
    exact = ratio ** (query_size - selection.wanted + 1) / (1 + ratio)
    assert exact <= selection.overrun_probability


@pytest.mark.parametrize(
    ("unlabelled", "levels"), [(500, 4096), (10**7, 4096), (3 * 10**7, 16_384), (10**8, 65_536), (10**9, 65_536)]
)
def test_a_large_pool_has_finer_coins(unlabelled: int, levels: int) -> None:
    planned = CutSelection.of(query_size=300, unlabelled=unlabelled, affordable=1.0)
    assert planned.coin_levels == levels
    # Only the size of the pool decides, which is public, and what is released costs the same.
    assert planned.released == CutSelection.of(query_size=300, unlabelled=500, affordable=1.0).released


def test_a_selection_survives_json() -> None:
    selection = cut(500, wanted=480)
    document = json.loads(json.dumps(selection.to_json()))
    assert document["mechanism"] == "cut"
    assert selection_from_json(document) == selection
    assert selection.released == Released(choice=None, threshold=Exponential(epsilon=0.5))
    plan = dpal.plan(target_epsilon=8, pool_size=2000, query_sizes=(300,), accountant="rdp", epochs=1)
    assert read_plan(json.dumps(plan.to_json())) == plan


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wanted": 501}, "wanted of a selection is 501, but must be from 1 to the query size of 500"),
        ({"wanted": 0}, "wanted of a selection"),
        ({"query_size": 20_001, "wanted": 5}, "query_size of a selection"),
        ({"grid_steps": 0}, "grid_steps of a selection"),
        ({"grid_steps": 1 << 17}, "grid_steps of a selection"),
        ({"coin_levels": 0}, "grid_steps of a selection"),
        ({"coin_levels": 1 << 20}, "coin_levels of a selection"),
        ({"cut_epsilon": float("nan")}, "cut_epsilon"),
        ({"cut_epsilon": 0.0}, "epsilon"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, float], message: str) -> None:
    sizes = {"query_size": 500, "unlabelled": 20_000, "cut_epsilon": 0.5, "wanted": 500}
    with pytest.raises(InvalidArgument, match=message):
        CutSelection(**(sizes | options))


def test_each_promise_has_its_own_selections() -> None:
    require_promise(cut(), INSIDE)
    with pytest.raises(InvalidArgument, match="releases its choice"):
        require_promise(cut(), RELEASED)
    with pytest.raises(InvalidArgument, match="cut or random with selections inside"):
        require_promise(threshold(5, high=0.5, low=0.1, epsilon=1.0, above=0.5), INSIDE)
    for arguments in ({"selection": "cut", "selections": RELEASED}, {"selection": "threshold", "selections": INSIDE}):
        with pytest.raises(InvalidArgument, match="selection"):
            dpal.plan(target_epsilon=8, pool_size=2000, **arguments)


def test_a_recorded_threshold_without_a_choice_cannot_be_released() -> None:
    # A selection of the user's own, as a document states it. Its threshold alone does not account for released ids.
    document = {"mechanism": "mine:Own", "private": True, "query_size": 5, "unlabelled": 50}
    stated = {"choice": None, "threshold": Exponential(epsilon=0.5).to_json()}
    recorded = RecordedSelection.from_json({**document, "released": stated})
    require_promise(recorded, INSIDE)
    with pytest.raises(InvalidArgument, match="releases its choice"):
        require_promise(recorded, RELEASED)
