"""Records that change under a campaign are refused; without fingerprints or recorded hashes, both attacks succeed."""

from collections.abc import Callable
from functools import cache

import pytest

import dpal
from dpal.audit import changed_data
from dpal.audit.attack import QUICK, Target
from dpal.audit.changed_data import (
    INITIAL,
    ReorderedDataAttack,
    ReplayedStepAttack,
    epsilon_of_two_lives,
    made_twice,
    reordered,
)
from dpal.campaign.campaign import Campaign
from dpal.campaign.fingerprints import CheckedRecords
from dpal.errors import CampaignBusy, DpalError
from dpal.planning.plan import Plan


@cache
def small_plan() -> Plan:
    return dpal.plan(
        target_epsilon=3,
        target_delta=1e-5,
        pool_size=2000,
        initial_size=300,
        query_sizes=(100,),
        batch_size=50,
        epochs=2,
        planner="step-amplification",
    )


def test_a_sorted_file_is_refused_before_anything_is_charged() -> None:
    finding = ReorderedDataAttack().run(Target(plan=small_plan()), QUICK)
    assert not finding.broken
    assert finding.epsilon_bound == 0
    assert finding.note == "the sorted file was refused before anything was charged"


def test_a_sorted_file_is_found_where_contents_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CheckedRecords, "_changed", lambda *_: [])
    finding = ReorderedDataAttack().run(Target(plan=small_plan()), QUICK)
    assert finding.broken
    assert finding.epsilon_bound == epsilon_of_two_lives(small_plan()) > 0
    seen = reordered()
    assert not seen.refused
    assert seen.charged
    # Only those that both their places put into a group.
    assert 0 < seen.twice <= INITIAL


def test_a_second_model_on_one_charge_is_refused() -> None:
    finding = ReplayedStepAttack().run(Target(plan=small_plan()), QUICK)
    assert not finding.broken
    assert finding.epsilon_bound == 0
    assert finding.note == "the second training was refused"


def test_a_model_without_its_edited_record_is_refused_by_its_recorded_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CheckedRecords, "_changed", lambda *_: [])
    assert made_twice().refused


def test_a_second_model_is_found_where_neither_contents_nor_hashes_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CheckedRecords, "_changed", lambda *_: [])
    # As if the model could be seen before its hash is recorded.
    monkeypatch.setattr(changed_data, "KILLED_AT", "train.checkpoint-drafted")
    finding = ReplayedStepAttack().run(Target(plan=small_plan()), QUICK)
    assert finding.broken
    assert finding.epsilon_bound > small_plan().epsilon
    # The noise is the same in both: what is left is the record's clipped gradient, before and after the edit.
    apart = float(finding.note.split(" clips apart")[0].split()[-1])
    assert 1 < apart <= 2


def test_a_process_that_lives_on_is_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed_data, "KILLED_AT", "nowhere")
    with pytest.raises(DpalError, match="was to die at nowhere"):
        made_twice()


def test_a_process_that_fails_earlier_is_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed_data.sys, "executable", "/bin/false")
    with pytest.raises(DpalError, match="died before that"):
        made_twice()


@pytest.mark.parametrize("attack", [reordered, made_twice])
def test_another_error_is_not_a_refusal(monkeypatch: pytest.MonkeyPatch, attack: Callable[[], object]) -> None:
    """Any of dpal's errors counted as a refusal: an attack that could not even be tried was reported as held off."""

    def busy(*_: object) -> Campaign:
        raise CampaignBusy("somebody else is writing")

    monkeypatch.setattr(changed_data, "_opened", busy)
    with pytest.raises(CampaignBusy):
        attack()


def test_a_record_of_two_groups_costs_at_least_as_much_as_one_that_stays() -> None:
    costs = [epsilon[-1] for group in small_plan().groups if (epsilon := group.epsilon_by_phase)]
    assert epsilon_of_two_lives(small_plan()) >= 0.9 * max(costs)
