import logging
from pathlib import Path

import numpy as np
import pytest

import dpal
from dpal.errors import DpalError, InvalidArgument
from dpal.planning.selections import SELECTIONS, PlannedSelection
from dpal.privacy.mechanisms import BernoulliSelection, DiscreteGaussian, DiscreteLaplace, Exponential
from dpal.privacy.one_shot import one_shot_epsilon, weight_epsilon_for
from dpal.randomness import SecureRandomness, SeededRandomness
from dpal.selection import grid as grid_module
from dpal.selection import mechanisms as mechanisms_module
from dpal.selection import threshold as threshold_module
from dpal.selection.acquisition import Entropy, LeastConfidence
from dpal.selection.grid import on_grid
from dpal.selection.mechanisms import NoisyTop, OneShotExponential, SelectionMechanism, Top, Uniform
from dpal.selection.planned import mechanism_of
from dpal.selection.threshold import ThresholdSampling, private_cut

SCORES = np.random.default_rng(5).beta(2, 3, 5000)


def seeded(seed: int = 3) -> SeededRandomness:
    return SeededRandomness(seed=seed, nothing_is_private=True)


def every_mechanism(query_size: int = 500) -> list[SelectionMechanism]:
    laplace = DiscreteLaplace(epsilon=2.0, grid_steps=1024)
    gaussian = DiscreteGaussian(noise_multiplier=1.0, grid_steps=1024)
    sampled = DiscreteGaussian(noise_multiplier=1.0, grid_steps=1024, participation=0.7)
    coins = BernoulliSelection(probability_high=0.2, probability_low=0.02)
    return [
        Uniform(query_size=query_size, highest=1.0),
        Top(query_size=query_size, highest=1.0),
        NoisyTop(query_size=query_size, highest=1.0, noise=laplace),
        NoisyTop(query_size=query_size, highest=0.8, noise=laplace),
        NoisyTop(query_size=query_size, highest=1.0, noise=gaussian),
        NoisyTop(query_size=query_size, highest=1.0, noise=sampled),
        OneShotExponential(query_size=query_size, highest=1.0, weight_epsilon=2.0, unlabelled=5000),
        ThresholdSampling(
            query_size=query_size,
            highest=1.0,
            choice=coins,
            threshold=Exponential(epsilon=0.05),
            fraction_above=0.45,
        ),
    ]


MECHANISMS = pytest.mark.parametrize("mechanism", every_mechanism(), ids=repr)


@MECHANISMS
def test_ids_are_different_and_belong_to_the_pool(mechanism: SelectionMechanism) -> None:
    ids = np.array([f"scan-{number}" for number in range(len(SCORES))])
    chosen = mechanism.select(SCORES, randomness=seeded(), ids=ids)
    everyone = [*chosen.to_label, *chosen.retired]
    assert len(set(everyone)) == len(everyone)
    assert set(everyone) <= set(ids)
    assert 400 < len(chosen.to_label) <= 500
    # The same draw by position: ids are names, nothing else.
    by_position = mechanism.select(SCORES, randomness=seeded())
    assert chosen.to_label.tolist() == ids[by_position.to_label].tolist()


@MECHANISMS
def test_an_array_a_memory_map_and_chunks_select_the_same(mechanism: SelectionMechanism, tmp_path: Path) -> None:
    np.save(tmp_path / "scores.npy", SCORES)
    sources = [
        SCORES,
        np.load(tmp_path / "scores.npy", mmap_mode="r"),
        iter(np.array_split(SCORES, 7)),
        iter([SCORES[:1], SCORES[1:1], SCORES[1:]]),
    ]
    chosen = [mechanism.select(source, randomness=seeded()) for source in sources]
    for other in chosen[1:]:
        assert other.to_label.tolist() == chosen[0].to_label.tolist()
        assert other.retired.tolist() == chosen[0].retired.tolist()


@MECHANISMS
def test_it_prefers_high_scores_unless_it_is_random(mechanism: SelectionMechanism) -> None:
    chosen = mechanism.select(SCORES, randomness=seeded())
    gain = SCORES[chosen.to_label].mean() - SCORES.mean()
    assert abs(gain) < 0.03 if mechanism.name == "random" else gain > 0.05
    if mechanism.name == "none":
        assert SCORES[chosen.to_label].min() >= np.sort(SCORES)[-500] - 1 / 65_535


@MECHANISMS
def test_the_true_scores_decide_nothing_beyond_the_grid(mechanism: SelectionMechanism) -> None:
    # Floating-point neighbours of a score, and scores beyond the ends, give the very same selection.
    steps, top = mechanism.grid_steps, mechanism.highest
    on_points = np.round(np.minimum(SCORES, top) / top * steps) / steps * top
    nudged = on_points + 0.4 * top / steps
    beyond = np.where(on_points >= top, 7.0, on_points + 0.3 * top / steps)
    first = mechanism.select(nudged, randomness=seeded())
    assert mechanism.select(beyond, randomness=seeded()).to_label.tolist() == first.to_label.tolist()


@MECHANISMS
def test_broken_scores_count_as_the_lowest_and_raise_nothing(mechanism: SelectionMechanism) -> None:
    broken = SCORES.copy()
    broken[::2] = np.nan
    broken[1::10] = -np.inf
    broken[3::10] = np.inf
    lowest = np.where(np.isfinite(broken), broken, 0.0)
    chosen = mechanism.select(broken, randomness=seeded())
    assert chosen.to_label.tolist() == mechanism.select(lowest, randomness=seeded()).to_label.tolist()


@MECHANISMS
def test_no_score_in_reprs_logs_or_errors(mechanism: SelectionMechanism, caplog: pytest.LogCaptureFixture) -> None:
    secret = np.full(5000, 0.123456789)
    with caplog.at_level(logging.DEBUG):
        chosen = mechanism.select(secret, randomness=seeded())
    texts = [repr(mechanism), repr(chosen), caplog.text]
    for wrong in (secret.reshape(50, 100), secret.astype(complex), secret.tolist(), iter([secret.tolist()]), [0.1234]):
        with pytest.raises(DpalError) as caught:
            mechanism.select(wrong, randomness=seeded())
        texts.append(str(caught.value))
    with pytest.raises(DpalError) as caught:
        mechanism.select(secret, randomness=seeded(), ids=["a"])
    texts.append(str(caught.value))
    assert not any("0.1234" in text for text in texts)


@MECHANISMS
def test_an_empty_pool_is_refused(mechanism: SelectionMechanism) -> None:
    for empty in (np.empty(0), iter(())):
        with pytest.raises(InvalidArgument, match="no unlabelled record"):
            mechanism.select(empty, randomness=seeded())


def test_more_than_there_is_cannot_be_selected() -> None:
    for mechanism in every_mechanism(query_size=11):
        few = SCORES[:10]
        if mechanism.name == "threshold" or "participation=0.7" in repr(mechanism):
            assert len(mechanism.select(few, randomness=seeded()).to_label) <= 10
        else:
            with pytest.raises(InvalidArgument, match=r"is 1[01]"):
                mechanism.select(few, randomness=seeded())


def test_a_secure_selection_differs_from_time_to_time() -> None:
    mechanism = every_mechanism()[2]
    first, second = (mechanism.select(SCORES, randomness=SecureRandomness()).to_label.tolist() for _ in range(2))
    assert first != second


def test_a_surplus_is_retired_and_fewer_are_not_topped_up() -> None:
    coins = BernoulliSelection(probability_high=0.5, probability_low=0.1)
    wants = {
        size: ThresholdSampling(
            query_size=size,
            highest=1.0,
            choice=coins,
            threshold=Exponential(epsilon=1.0),
            fraction_above=0.5,
        ).select(SCORES, randomness=seeded())
        for size in (1000, 4000)
    }
    assert len(wants[1000].to_label) == 1000
    assert 300 < len(wants[1000].retired) < 700  # 1,500 expected
    assert len(wants[4000].retired) == 0
    assert len(wants[4000].to_label) == 1000 + len(wants[1000].retired)
    assert 0 < wants[1000].threshold < 1


def test_the_private_cut_is_near_the_quantile() -> None:
    grid = on_grid(SCORES, highest=1.0, steps=65_535)
    for fraction in (0.1, 0.45, 0.9):
        cut = private_cut(grid, 65_535, fraction, Exponential(epsilon=0.5), seeded())
        assert np.mean(grid >= cut) == pytest.approx(fraction, abs=0.02)
    # All scores 0: nobody reaches any cut.
    assert private_cut(np.zeros(10, dtype=np.uint16), 65_535, 0.5, Exponential(epsilon=0.5), seeded()) >= 1


@pytest.mark.parametrize("selection", SELECTIONS)
def test_what_runs_is_what_the_plan_charges(selection: str) -> None:
    plan = dpal.plan(target_epsilon=8, pool_size=2000, accountant="rdp", selection=selection, accounting="renyi")
    for planned in plan.selections:
        mechanism = mechanism_of(planned, Entropy(classes=10))
        if planned.is_private:
            assert mechanism.released == planned.released()
        else:
            with pytest.raises(InvalidArgument, match="private one"):
                mechanism.released  # noqa: B018
        assert mechanism.query_size == planned.query_size
        assert mechanism.is_private == planned.is_private
        chosen = mechanism.select(SCORES[: planned.unlabelled], randomness=seeded())
        assert len(chosen.to_label) > 0.7 * planned.query_size


def test_what_lies_in_a_later_chunk_counts_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    # Pools are walked through in chunks of a million; here of 64 records.
    for module in (grid_module, mechanisms_module, threshold_module):
        monkeypatch.setattr(module, "_CHUNK", 64)
    scores = np.tile([0.1, 0.9, 0.2, 0.3], 250)
    nearly_sure = BernoulliSelection(probability_high=1 - 1e-12, probability_low=1e-12)
    threshold = ThresholdSampling(
        query_size=300, highest=1.0, choice=nearly_sure, threshold=Exponential(epsilon=50.0), fraction_above=0.25
    )
    little_noise = DiscreteLaplace(epsilon=2000.0, grid_steps=1024)
    for mechanism in (
        threshold,
        NoisyTop(query_size=250, highest=1.0, noise=little_noise),
        Top(query_size=250, highest=1.0),
    ):
        assert mechanism.select(scores, randomness=seeded()).to_label.tolist() == list(range(1, 1000, 4))


def test_ids_come_back_as_they_are() -> None:
    ids = [2**63, 2**53 + 1, 2**53, "a\0", "a", (1, 2)]
    chosen = Top(query_size=6, highest=1.0).select(SCORES[:6], randomness=seeded(), ids=ids)
    assert chosen.to_label.tolist() == ids
    for wrong in ({1, 2, 3, 4, 5, 6}, "abcdef", np.zeros((6, 1)), 6):
        with pytest.raises(InvalidArgument, match="ids"):
            Top(query_size=6, highest=1.0).select(SCORES[:6], randomness=seeded(), ids=wrong)


def test_masked_scores_count_as_the_lowest() -> None:
    masked = np.ma.MaskedArray([0.9, 0.5, 0.4], mask=[True, False, False])
    assert Top(query_size=1, highest=1.0).select(masked, randomness=seeded()).to_label.tolist() == [1]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Top(query_size=-1, highest=1.0), "query_size is -1"),
        (lambda: Top(query_size=2.5, highest=1.0), "query_size is 2.5"),
        (lambda: Top(query_size=2, highest=float("nan")), "highest is nan"),
        (
            lambda: OneShotExponential(query_size=20, highest=1.0, weight_epsilon=1.0, unlabelled=10),
            "query_size is 20",
        ),
        (
            lambda: OneShotExponential(query_size=2, highest=1.0, weight_epsilon=float("nan"), unlabelled=10),
            "weight_epsilon is nan",
        ),
        (
            lambda: ThresholdSampling(
                query_size=2,
                highest=1.0,
                choice=BernoulliSelection(probability_high=0.5, probability_low=0.1),
                threshold=Exponential(epsilon=1.0),
                fraction_above=float("nan"),
            ),
            "fraction_above is nan",
        ),
    ],
)
def test_bad_fields_are_named(build, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        build()


def test_a_plan_that_selects_more_than_there_is_is_refused() -> None:
    document = {"mechanism": "exponential", "query_size": 20, "unlabelled": 10, "weight_epsilon": 1.0}
    with pytest.raises(InvalidArgument, match="query_size of a selection is 20"):
        PlannedSelection.from_json(document)


def test_the_one_shot_epsilon_by_hand() -> None:
    # Ten records, all picked but one: nine times somebody else. The sum for w = e: Σ log(1 + (e − 1)/m), m = 10 … 2.
    exact = sum(np.log1p(np.expm1(1.0) / left) for left in range(10, 1, -1))
    assert one_shot_epsilon(1.0, 10, 9) == pytest.approx(exact) and exact > 1
    assert one_shot_epsilon(1.0, 10, 1) == 1.0
    assert one_shot_epsilon(1000.0, 3, 2) == pytest.approx(2000 - np.log(6))
    assert weight_epsilon_for(0.5, 10, 10) < 0.5
    assert one_shot_epsilon(weight_epsilon_for(0.5, 10, 10), 10, 10) <= 0.5


def test_the_clip_is_the_acquisitions_unless_given() -> None:
    plan = dpal.plan(target_epsilon=8, pool_size=2000, accountant="rdp", selection="laplace")
    planned = plan.selections[0]
    assert mechanism_of(planned, Entropy(classes=10)).highest == 0.8
    assert mechanism_of(planned, Entropy(classes=10), clip=1.0).highest == 1.0
    assert mechanism_of(planned, LeastConfidence(classes=4)).highest == 0.75


def test_a_smaller_pool_than_planned_is_refused_by_the_one_shot_mechanism() -> None:
    mechanism = OneShotExponential(query_size=5, highest=1.0, weight_epsilon=1.0, unlabelled=100)
    with pytest.raises(InvalidArgument, match="at least 100"):
        mechanism.select(SCORES[:99], randomness=seeded())


def test_on_grid_rounds_down() -> None:
    grid = on_grid(np.array([0.0, 0.19, 0.2, 0.5, 0.8, 2.0, -1.0]), highest=0.8, steps=4)
    assert grid.tolist() == [0, 0, 1, 2, 4, 4, 0]
    assert on_grid(np.array([0, 1, 2]), highest=2.0, steps=4).tolist() == [0, 2, 4]
    assert on_grid(np.array([0.5], dtype=np.float32), highest=1.0, steps=4).tolist() == [2]
    with pytest.raises(InvalidArgument, match="highest score"):
        on_grid(SCORES, highest=0.0, steps=4)


def test_ties_are_broken_at_random() -> None:
    mechanism = Top(query_size=1, highest=1.0)
    picked = {int(mechanism.select(np.full(3, 0.5), randomness=seeded(seed)).to_label[0]) for seed in range(40)}
    assert picked == {0, 1, 2}
