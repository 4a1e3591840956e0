"""Whether a model is better than chance, against every way to deal out its answers; and when a campaign stops."""

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_campaigns import blind_campaign, blind_opened, linear_campaign, linear_held_out, linear_plan

from dpal.campaign.campaign import Campaign
from dpal.campaign.chance import _shuffled_deviation, in_words, stopped_after, verdict_of
from dpal.campaign.facts import Evaluated
from dpal.campaign.metrics import evaluation_of


def evaluated(records: tuple[int, ...], right: tuple[int, ...], answers: tuple[int, ...], phase: int = 0) -> Evaluated:
    shares = [r / n for r, n in zip(right, records, strict=True) if n]
    metrics = {"accuracy": sum(right) / sum(records), "balanced_accuracy": float(np.mean(shares))}
    return Evaluated(
        phase=phase,
        records=sum(records),
        metrics=metrics,
        class_records=records,
        class_right=right,
        class_answers=answers,
    )


@pytest.mark.parametrize(("labels", "answers"), [("aabbb", "aabab"), ("aabcc", "abbcc"), ("aaaab", "aaaaa")])
def test_the_deviation_is_that_of_all_ways_to_deal_out_the_answers(labels: str, answers: str) -> None:
    names = sorted(set(labels))
    scores = [
        np.mean(
            [sum(a == b == name for a, b in zip(labels, dealt, strict=True)) / labels.count(name) for name in names]
        )
        for dealt in itertools.permutations(answers)
    ]
    counts = ([labels.count(name) for name in names], [answers.count(name) for name in names])
    assert _shuffled_deviation(*counts) == pytest.approx(float(np.std(scores)), abs=1e-12)
    assert np.mean(scores) == pytest.approx(1 / len(names))


def test_answers_outside_the_held_out_classes_count_as_wrong_ones() -> None:
    # The third class has no record: who answers it is never right.
    scores = [
        np.mean([dealt[:2].count("a") / 2, dealt[2:].count("b") / 3]) for dealt in itertools.permutations("aabbc")
    ]
    assert _shuffled_deviation([2, 3, 0], [2, 2, 1]) == pytest.approx(float(np.std(scores)), abs=1e-12)


@pytest.mark.parametrize(
    ("records", "right", "answers", "is_chance"),
    [
        # The X-rays of a new user: nearly always the majority class, 62.8% right.
        ((234, 390), (4, 388), (6, 618), True),
        # As many right in all, but it tells the two apart.
        ((234, 390), (140, 252), (278, 346), False),
        # Always the majority class: right for 62.5%, and nothing learnt.
        ((234, 390), (0, 390), (0, 624), True),
        # Below chance is not better than chance.
        ((20, 20), (2, 2), (20, 20), True),
        # Far fewer right than the majority class has, but rare classes are found.
        ((180, 10, 10), (100, 8, 8), (104, 48, 48), False),
    ],
)
def test_who_is_better_than_chance(records: Any, right: Any, answers: Any, is_chance: bool) -> None:
    verdict = verdict_of(evaluated(records, right, answers))
    assert verdict is not None
    assert verdict.is_chance is is_chance


def test_models_that_know_nothing_are_found_out_nearly_always() -> None:
    """Two standard deviations: about one in forty passes by luck."""
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 4, 200)
    passed = 0
    for _ in range(2000):
        logits = rng.normal(size=(200, 4)).astype(np.float32) + np.array([1, 0.5, 0, 0], np.float32)
        verdict = verdict_of(evaluation_of(0, logits, labels, multi_label=False, classes=tuple("abcd")))
        assert verdict is not None
        passed += not verdict.is_chance
    assert 0.01 < passed / 2000 < 0.045


def test_several_labels_are_judged_by_the_mean_auc() -> None:
    rng = np.random.default_rng(6)
    targets = (rng.random((120, 3)) < 0.4).astype(np.float32)
    noise = rng.normal(size=(120, 3)).astype(np.float32)
    for knowledge, is_chance in ((0.0, True), (1.0, False)):
        fact = evaluation_of(0, noise + knowledge * targets, targets, multi_label=True, classes=tuple("abc"))
        verdict = verdict_of(fact)
        assert verdict is not None
        assert verdict.is_chance is is_chance
        words = in_words([replace(fact, metrics={"auc": 0.4}), fact], 1, "abc")
        auc = fact.metrics["auc"]
        assert f"mean AUC on 120 held-out records is {auc:.3f} (0.400 after phase 1); chance has 0.500" in words
        assert ("No better than chance" in words) is is_chance


def test_too_few_records_never_stop_anything() -> None:
    verdict = verdict_of(evaluated((2, 1), (2, 0), (3, 0)))
    assert verdict is not None
    assert not verdict.can_tell
    assert not verdict.is_chance
    # One class, or no counts: nothing to compare with.
    assert verdict_of(evaluated((5, 0), (2, 0), (2, 3))) is None
    assert verdict_of(Evaluated(phase=0, records=9, metrics={"accuracy": 0.1})) is None


def test_one_plain_sentence() -> None:
    first, second = evaluated((234, 390), (0, 390), (0, 624)), evaluated((234, 390), (4, 388), (6, 618), phase=1)
    words = in_words([first, second], 1, ("normal", "pneumonia"))
    assert words.startswith("62.8% of the 624 held-out records are right; always answering 'pneumonia' would be right")
    assert "right for 62.5%. Balanced accuracy 50.6% (50.0% after phase 1). No better than chance" in words
    limit = 0.5 + 2 * _shuffled_deviation((234, 390), (6, 618))
    assert f"up to {math.ceil(1000 * limit) / 10:.1f}% by luck" in words
    assert words.endswith("This one has 50.6%")
    assert "(50.6% after phase 2, so it has not become better)" in in_words(
        [second, replace(first, phase=2)], 1, ("normal", "pneumonia")
    )
    old = Evaluated(phase=0, records=10, metrics={"accuracy": 0.5, "balanced_accuracy": 0.4})
    assert in_words([old], 0, ("a", "b")) == "50.0% of the 10 held-out records are right. Balanced accuracy 40.0%"


def test_a_campaign_stops_before_the_next_charge_and_says_why(tmp_path: Path) -> None:
    said: list[str] = []
    campaign = blind_campaign(tmp_path / "c")
    campaign.parts = replace(campaign.parts, tell=said.append)
    status = campaign.run()
    assert (status.stage, status.is_stopped) == ("stopped-at-chance", True)
    assert "phase 1 is no better than chance" in status.next_step
    assert [charge.kind for _, charge in campaign.state().charges] == ["charged-selection", "charged-training"]
    assert any("always answering" in words and "No better than chance" in words for words in said)
    # The same from the facts alone, and as often as one asks.
    assert Campaign(tmp_path / "c").status() == status
    assert blind_opened(tmp_path / "c").run() == status
    assert stopped_after(campaign.state(), campaign.schedule) == 0
    assert campaign.verify().holds


def test_without_a_held_out_set_nothing_stops(tmp_path: Path) -> None:
    assert blind_campaign(tmp_path / "c", evaluation=None).run().stage == "finished"


def test_a_simulation_warns_and_goes_on_by_itself(tmp_path: Path) -> None:
    said: list[str] = []
    campaign = blind_campaign(tmp_path / "c", seed=7, not_private=True)
    campaign.parts = replace(campaign.parts, tell=said.append)
    assert campaign.run().stage == "finished"
    assert sum("A simulation goes on" in words for words in said) == 3
    assert campaign.state().went_on == ()


def test_the_last_model_stops_nothing_but_is_called_what_it_is(tmp_path: Path) -> None:
    status = blind_campaign(tmp_path / "c", plan=linear_plan(query_sizes=())).run()
    assert status.stage == "finished"
    assert "No better than chance" in status.held_out_in_words[-1]


def test_a_campaign_that_learns_does_not_stop(tmp_path: Path) -> None:
    options = {"evaluation": linear_held_out(200), "evaluation_is_public": True, "seed": None}
    plan = linear_plan(target_epsilon=1000, epochs=60)
    campaign = linear_campaign(tmp_path / "c", plan=plan, training={"learning_rate": 0.1}, **options)
    assert campaign.run().stage == "finished"
    assert campaign.state().went_on == ()
