"""What holds for every kind of selection."""

import logging
from pathlib import Path

import numpy as np
import pytest
from selections import every_selection, seeded, threshold

from dpal.errors import DpalError, InvalidArgument
from dpal.randomness import SecureRandomness
from dpal.selection import HighestScores, LaplaceSelection, Selection
from dpal.selection import by_blocks as by_blocks_module
from dpal.selection import grid as grid_module
from dpal.selection import noisy_scores as noisy_scores_module
from dpal.selection.by_blocks import BlockSelection

SCORES = np.random.default_rng(5).beta(2, 3, 5000)
EVERY_KIND = pytest.mark.parametrize("selection", every_selection(), ids=lambda selection: selection.name)
CLIPS = pytest.mark.parametrize("clip", [None, 0.8])


@EVERY_KIND
@CLIPS
def test_ids_are_different_and_belong_to_the_pool(selection: Selection, clip: float | None) -> None:
    ids = np.array([f"scan-{number}" for number in range(len(SCORES))])
    chosen = selection.choose(SCORES, highest=1.0, clip=clip, randomness=seeded(), ids=ids)
    everyone = [*chosen.to_label, *chosen.retired]
    assert len(set(everyone)) == len(everyone)
    assert set(everyone) <= set(ids)
    assert 400 < len(chosen.to_label) <= 500
    if isinstance(selection, BlockSelection):
        # Coins belong to ids: in any order of the records, the same ones are chosen.
        order = np.random.default_rng(1).permutation(len(ids))
        shuffled = selection.choose(SCORES[order], highest=1.0, clip=clip, randomness=seeded(), ids=ids[order])
        assert set(shuffled.to_label) == set(chosen.to_label) and set(shuffled.retired) == set(chosen.retired)
        with pytest.raises(InvalidArgument, match="1 repetitions"):
            selection.choose(SCORES, highest=1.0, randomness=seeded(), ids=np.append(ids[:-1], ids[0]))
    else:
        # The same draw by position: ids are names, nothing else.
        by_position = selection.choose(SCORES, highest=1.0, clip=clip, randomness=seeded())
        assert chosen.to_label.tolist() == ids[by_position.to_label].tolist()


@EVERY_KIND
def test_an_array_a_memory_map_and_chunks_select_the_same(selection: Selection, tmp_path: Path) -> None:
    np.save(tmp_path / "scores.npy", SCORES)
    sources = [
        SCORES,
        np.load(tmp_path / "scores.npy", mmap_mode="r"),
        iter(np.array_split(SCORES, 7)),
        iter([SCORES[:1], SCORES[1:1], SCORES[1:]]),
    ]
    chosen = [selection.choose(source, highest=1.0, randomness=seeded()) for source in sources]
    for other in chosen[1:]:
        assert other.to_label.tolist() == chosen[0].to_label.tolist()
        assert other.retired.tolist() == chosen[0].retired.tolist()


@EVERY_KIND
def test_it_prefers_high_scores_unless_it_is_random(selection: Selection) -> None:
    chosen = selection.choose(SCORES, highest=1.0, randomness=seeded())
    gain = SCORES[chosen.to_label].mean() - SCORES.mean()
    assert gain > 0.05 if selection.reads_scores else abs(gain) < 0.03
    if not selection.is_private:
        assert SCORES[chosen.to_label].min() >= np.sort(SCORES)[-500] - 1 / 65_535


@EVERY_KIND
@CLIPS
def test_the_true_scores_decide_nothing_beyond_the_grid(selection: Selection, clip: float | None) -> None:
    # Floating-point neighbours of a score, and scores beyond the ends, give the very same selection.
    steps, top = selection.resolution, selection.largest_score(1.0, clip)
    on_points = np.round(np.minimum(SCORES, top) / top * steps) / steps * top
    nudged = on_points + 0.4 * top / steps
    beyond = np.where(on_points >= top, 7.0, on_points + 0.3 * top / steps)
    first = selection.choose(nudged, highest=1.0, clip=clip, randomness=seeded())
    second = selection.choose(beyond, highest=1.0, clip=clip, randomness=seeded())
    assert second.to_label.tolist() == first.to_label.tolist()


@EVERY_KIND
def test_broken_scores_count_as_the_lowest_and_raise_nothing(selection: Selection) -> None:
    broken = SCORES.copy()
    broken[::2] = np.nan
    broken[1::10] = -np.inf
    broken[3::10] = np.inf
    lowest = np.where(np.isfinite(broken), broken, 0.0)
    chosen, expected = (selection.choose(scores, highest=1.0, randomness=seeded()) for scores in (broken, lowest))
    assert chosen.to_label.tolist() == expected.to_label.tolist()


@EVERY_KIND
def test_no_score_in_reprs_logs_or_errors(selection: Selection, caplog: pytest.LogCaptureFixture) -> None:
    secret = np.full(5000, 0.123456789)
    with caplog.at_level(logging.DEBUG):
        chosen = selection.choose(secret, highest=1.0, randomness=seeded())
    texts = [repr(selection), repr(chosen), caplog.text]
    for wrong in (secret.reshape(50, 100), secret.astype(complex), secret.tolist(), iter([secret.tolist()]), [0.1234]):
        with pytest.raises(DpalError) as caught:
            selection.choose(wrong, highest=1.0, randomness=seeded())
        texts.append(str(caught.value))
    with pytest.raises(DpalError) as caught:
        selection.choose(secret, highest=1.0, randomness=seeded(), ids=["a"])
    texts.append(str(caught.value))
    assert not any("0.1234" in text for text in texts)


@EVERY_KIND
def test_an_empty_pool_is_refused(selection: Selection) -> None:
    for empty in (np.empty(0), iter(())):
        with pytest.raises(InvalidArgument, match="no unlabelled record"):
            selection.choose(empty, highest=1.0, randomness=seeded())


@EVERY_KIND
@pytest.mark.parametrize("highest", [0.0, float("nan"), float("inf")])
def test_the_highest_score_must_be_a_number_above_0(selection: Selection, highest: float) -> None:
    with pytest.raises(InvalidArgument, match="highest score"):
        selection.choose(SCORES, highest=highest, randomness=seeded())


def test_more_than_there_is_cannot_be_selected() -> None:
    for selection in every_selection(query_size=11):
        few = SCORES[:10]
        if selection.name in ("threshold", "sampled-gaussian"):
            assert len(selection.choose(few, highest=1.0, randomness=seeded()).to_label) <= 10
        else:
            with pytest.raises(InvalidArgument, match=r"is 1[01]"):
                selection.choose(few, highest=1.0, randomness=seeded())


def test_a_secure_selection_differs_from_time_to_time() -> None:
    selection = LaplaceSelection(query_size=500, unlabelled=5000, epsilon=2.0, grid_steps=1024)
    first, second = (
        selection.choose(SCORES, highest=1.0, randomness=SecureRandomness()).to_label.tolist() for _ in range(2)
    )
    assert first != second


def test_what_lies_in_a_later_chunk_counts_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    # Pools are walked through in chunks of a million; here of 64 records.
    for module in (grid_module, noisy_scores_module, by_blocks_module):
        monkeypatch.setattr(module, "_CHUNK", 64)
    scores = np.tile([0.1, 0.9, 0.2, 0.3], 250)
    for selection in (
        threshold(300, high=1 - 1e-12, low=1e-12, epsilon=50.0, above=0.25),
        LaplaceSelection(query_size=250, unlabelled=1000, epsilon=2000.0, grid_steps=1024),
        HighestScores(query_size=250, unlabelled=1000),
    ):
        chosen = selection.choose(scores, highest=1.0, randomness=seeded())
        assert chosen.to_label.tolist() == list(range(1, 1000, 4))


def test_ids_come_back_as_they_are() -> None:
    ids = [2**63, 2**53 + 1, 2**53, "a\0", "a", (1, 2)]
    selection = HighestScores(query_size=6, unlabelled=6)
    assert selection.choose(SCORES[:6], highest=1.0, randomness=seeded(), ids=ids).to_label.tolist() == ids
    for wrong in ({1, 2, 3, 4, 5, 6}, "abcdef", np.zeros((6, 1)), 6):
        with pytest.raises(InvalidArgument, match="ids"):
            selection.choose(SCORES[:6], highest=1.0, randomness=seeded(), ids=wrong)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"query_size": -1}, "query_size is -1"),
        ({"query_size": 0}, "query_size of a selection is 0"),
        ({"query_size": 2.5}, "query_size is 2.5"),
        ({"query_size": 20}, "query_size of a selection is 20"),
        ({"epsilon": float("nan")}, "epsilon is nan"),
        ({"epsilon": 0.0}, "epsilon is 0"),
        ({"epsilon": "abc"}, "epsilon is 'abc'"),
        ({"grid_steps": 0}, "grid_steps is 0"),
        ({"grid_steps": True}, "grid_steps is True"),
    ],
)
def test_bad_fields_are_named(fields: dict, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        LaplaceSelection(**{"query_size": 2, "unlabelled": 10, "epsilon": 1.0, "grid_steps": 4, **fields})


@EVERY_KIND
def test_what_was_written_is_read_as_the_same_object(selection: Selection) -> None:
    assert type(selection).from_json(selection.to_json()) == selection
    for change in ({"surprise": 1}, {"private": not selection.is_private}, {"query_size": 6000}):
        with pytest.raises(InvalidArgument):
            type(selection).from_json({**selection.to_json(), **change})
