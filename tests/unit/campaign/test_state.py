"""The state follows from the facts: contradictions are refused, and the next step is never chosen too early."""

from dataclasses import replace

import pytest
from small_facts import SCHEDULE, charged_selection, charged_training, created, recorded, selected

from dpal.campaign.facts import (
    Answered,
    Closed,
    Evaluated,
    Fact,
    Finished,
    GivenUp,
    Produced,
    Resumed,
    Scored,
    Trained,
    WentOn,
    Withdrawn,
)
from dpal.campaign.state import Finish, Nothing, Select, State, Train, WaitForLabels, fold, next_step
from dpal.errors import DamagedCampaign

MADE = {"phase": 0, "sha256": "a", "export_sha256": "b", "engine": "fused", "seconds": 1.0}
# Facts 1 to 6: a group of two is chosen and answered, and the first phase is charged (fact 5) and made (fact 6).
LABELLED: list[Fact] = [created(), charged_selection(), selected(2, "a", "b"), Answered(source="", answers={"a": 0})]
CHARGED = [*LABELLED, charged_training()]
PRODUCED = [*CHARGED, Produced(charge=5, **MADE)]
MODEL = Trained(charge=5, file="checkpoints/phase-1.safetensors", **MADE)
TRAINED = [*PRODUCED, MODEL]
# The same start on a large pool, whose selections are scored first and keep copies.
LARGE: list[Fact] = [created(large=True), charged_selection()]
SCORED = [*LARGE, Scored(charge=2, scores="f")]
SCORES = Evaluated(phase=0, records=1, metrics={})


def state(*facts: Fact) -> State:
    return fold(recorded(*facts))


@pytest.mark.parametrize(
    ("before", "fact", "message"),
    [
        (LABELLED, charged_training(1), "a charge out of order"),
        (CHARGED, charged_training(), "while another one is open"),
        (LABELLED, selected(2, "c", group=1), "a selection that was not charged"),
        ([created(), charged_selection()], selected(2, "a", "a"), "a record a second time"),
        ([*TRAINED, charged_selection(1)], selected(8, "a", group=1), "a record a second time"),
        ([*TRAINED, Withdrawn(ids=("c",), reason=""), charged_selection(1)], selected(9, "c", group=1), "a withdrawn"),
        (CHARGED, MODEL, "not the model that was made"),
        (PRODUCED, replace(MODEL, sha256="c"), "not the model that was made"),
        (PRODUCED, replace(MODEL, file="../phase-1.safetensors"), "in the wrong place"),
        (PRODUCED, PRODUCED[-1], "a second model for one charge"),
        (PRODUCED, GivenUp(charge=5, phase=0, reason="", settings=""), "whose model was made"),
        ([created(), charged_selection()], Scored(charge=2, scores="f"), "a second time for one charge"),
        (SCORED, Scored(charge=2, scores="f"), "a second time for one charge"),
        (LARGE, Scored(charge=1, scores="f"), "that was not charged"),
        (CHARGED, Scored(charge=5, scores="f"), "that was not charged"),
        (LARGE, selected(2, "a"), "other copies than promised"),
        ([created(), charged_selection()], replace(selected(2, "a"), contents="c"), "other copies than promised"),
        (LABELLED, Answered(source="", answers={"c": 0}), "was not asked"),
        (LABELLED, Answered(source="", answers={"a": 2}), "outside the classes"),
        (LABELLED, Closed(group=1), "does not exist"),
        (LABELLED, Evaluated(phase=0, records=1, metrics={}), "not the newest"),
        (TRAINED, WentOn(phase=0, settings=""), "not the newest"),
        ([*TRAINED, SCORES, WentOn(phase=0, settings="")], WentOn(phase=0, settings=""), "not the newest"),
        ([*TRAINED, SCORES, charged_selection(1)], WentOn(phase=0, settings=""), "in the middle of a step"),
        (CHARGED, Finished(), "out of order"),
        (CHARGED, Resumed(charge=2), "was not open"),
        (LABELLED, Withdrawn(ids=(), reason=""), "a second time"),
        (LABELLED, created(), "is not valid at this point"),
    ],
)
def test_a_fact_that_contradicts_the_others_is_refused(before: list[Fact], fact: Fact, message: str) -> None:
    state(*before)
    with pytest.raises(DamagedCampaign, match=f"Fact {len(before) + 1} .*{message}"):
        state(*before, fact)


def test_a_campaign_begins_with_its_creation() -> None:
    for facts, message in (([], "no facts"), ([charged_selection()], "first fact is not its creation")):
        with pytest.raises(DamagedCampaign, match=message):
            state(*facts)


def test_scores_belong_to_one_attempt() -> None:
    assert state(*SCORED).scored == SCORED[-1]
    # A withdrawal makes it another step, and a selection ends it.
    assert state(*SCORED, Withdrawn(ids=("c",), reason="")).scored is None
    chosen = replace(selected(2, "a"), contents="c")
    assert state(*SCORED, chosen).scored is None and state(*LARGE, chosen).selected == (chosen,)


def test_folding_in_two_parts_gives_the_same() -> None:
    entries = recorded(*TRAINED)
    for cut in range(1, len(entries)):
        assert fold(entries[cut:], start=fold(entries[:cut])) == fold(entries)


def test_the_next_step_of_a_whole_campaign() -> None:
    steps = [
        (created(), Select(0)),
        (charged_selection(), Select(0)),
        (selected(2, "a", "b"), WaitForLabels(0)),
        (Answered(source="", answers={"a": 0}), WaitForLabels(0)),
        (Answered(source="", answers={"b": "skip"}), Train(0)),
        (charged_training(), Train(0)),
        (Produced(charge=6, **MADE), Train(0)),
        (replace(MODEL, charge=6), Select(1)),
        (charged_selection(1), Select(1)),
        (selected(9, "c", group=1), WaitForLabels(1)),
        (Closed(group=1), Train(1)),
        (charged_training(1), Train(1)),
        (GivenUp(charge=12, phase=1, reason="", settings="t"), Finish()),
        (Finished(), Nothing()),
    ]
    for done in range(1, len(steps) + 1):
        assert next_step(state(*(fact for fact, _ in steps[:done])), SCHEDULE) == steps[done - 1][1]
    final = state(*(fact for fact, _ in steps))
    # A charge that was given up still counts, and so do its new settings.
    assert [number for number, _ in final.charges] == [2, 6, 9, 12]
    assert (final.given_up, final.settings, final.phases_ended) == ((1,), "t", 2)


def test_who_has_no_label_or_was_withdrawn_is_not_trained_on() -> None:
    now = state(*LABELLED[:3], Answered(source="", answers={"a": 1, "b": "cannot-tell"}))
    assert (now.trainable(0), now.missing(0)) == (["a"], [])
    now = state(*LABELLED[:3], Answered(source="", answers={"a": 1}), Withdrawn(ids=("a", "b"), reason=""))
    assert (now.trainable(0), now.missing(0)) == ([], [])
    assert now.taken() == {"a", "b"}


def test_a_withdrawal_during_a_step_changes_its_key_unless_the_model_is_made() -> None:
    withdrawn = Withdrawn(ids=("b",), reason="")
    assert state(*CHARGED).sealed_with == 5
    assert state(*CHARGED, withdrawn).sealed_with == 6
    assert state(*PRODUCED, withdrawn).sealed_with == 5
    assert state(*LABELLED, withdrawn).sealed_with is None
