"""What was spent follows from the charges alone."""

import json
from pathlib import Path

import pytest
from small_campaigns import linear_campaign, linear_plan
from small_facts import charged_selection, charged_training, created, recorded, selected

from dpal.campaign.facts import ChargedSelection, GivenUp
from dpal.campaign.layout import SPENT
from dpal.campaign.ledger import Ledger, _check, charge_for_selection, charge_for_training, phase_of, planned_charge
from dpal.campaign.state import fold
from dpal.planning.plan import Schedule
from dpal.privacy.accountants import RdpAccountant
from dpal.privacy.mechanisms import PoissonSampledGaussian

PLAN = linear_plan(selections="released", selection="laplace", accounting="basic")
SCHEDULE = Schedule(phases=PLAN.phases, selections=PLAN.selections)


def test_the_first_draw_is_free_and_a_phase_costs_its_steps() -> None:
    facts = [created(), charged_selection(), selected(2, "a", "b")]
    drawn = Ledger.of(fold(recorded(*facts)))
    assert drawn == Ledger(phases=(), selections=())
    assert drawn.epsilon(PLAN.setting) == 0
    trained = Ledger.of(fold(recorded(*facts, charged_training())))
    step = PoissonSampledGaussian(sampling_probability=0.5, noise_multiplier=2.0)
    by_hand = RdpAccountant().epsilon([(step, 3)], PLAN.setting.target_delta)
    assert trained.epsilon(PLAN.setting) == pytest.approx(by_hand, abs=1e-12)


def test_every_selection_after_the_first_draw_is_in_it() -> None:
    facts = [created(), charged_selection(), selected(2, "a", "b"), charge_for_selection(SCHEDULE, 1)]
    assert Ledger.of(fold(recorded(*facts))).selections == PLAN.selections[:1]


def test_a_phase_that_was_given_up_costs_as_much() -> None:
    facts = [created(), charged_selection(), selected(2, "a", "b"), charged_training()]
    given_up = [*facts, GivenUp(charge=4, phase=0, reason="", settings="")]
    assert Ledger.of(fold(recorded(*given_up))) == Ledger.of(fold(recorded(*facts)))


def test_a_selection_counts_before_its_group_is_trained_on() -> None:
    """Its ids are known from then on. With basic accounting, its own ε is added."""
    epsilon = PLAN.selections[0].released.choice.epsilon
    first = Ledger(phases=PLAN.phases[:1], selections=())
    waiting = Ledger(phases=PLAN.phases[:1], selections=PLAN.selections[:1])
    before, after = first.spending(PLAN.setting), waiting.spending(PLAN.setting)
    assert before.unselected == 0
    assert after.unselected == pytest.approx(epsilon)
    # Those who wait have paid for the selection alone, and the first group for its training alone.
    assert after.groups == (pytest.approx(before.groups[0]), pytest.approx(epsilon))


def test_the_whole_plan_costs_what_it_promises() -> None:
    ledger = Ledger(phases=PLAN.phases, selections=PLAN.selections)
    assert ledger.epsilon(PLAN.setting) == pytest.approx(PLAN.epsilon, abs=1e-12)


def test_charges_are_those_of_the_plan() -> None:
    for number, phase in enumerate(PLAN.phases):
        charge = charge_for_training(SCHEDULE, number)
        assert phase_of(charge) == phase
        assert planned_charge(charge, SCHEDULE) == charge
    assert charge_for_selection(SCHEDULE, 0).selection == {"mechanism": "random"}
    forged = ChargedSelection(group=1, selection=PLAN.selections[0].to_json() | {"epsilon": 1e-3})
    assert planned_charge(forged, SCHEDULE) == charge_for_selection(SCHEDULE, 1) != forged


def test_a_wrong_note_of_what_was_spent_is_never_shown_unnoticed(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    campaign = linear_campaign(folder)
    campaign.run()
    true = campaign.verify().epsilon_spent
    path = folder / SPENT
    note = json.loads(path.read_text())
    assert note["epsilon"] == true
    # Damage: it is not taken.
    for content in (note | {"epsilon": 1.0}, note | {"charges": "0" * 64}, {"epsilon": 1.0}, [], None):
        path.write_text(json.dumps(content))
        assert campaign.status().epsilon_spent == true
        assert campaign.verify().holds
    # Missing: it is noted again.
    path.unlink()
    assert campaign.status().epsilon_spent == true
    assert json.loads(path.read_text()) == note
    # Forged with all means: verify says so.
    path.write_text(json.dumps(note | {"epsilon": 1.0, "check": _check(note["charges"], 1.0)}))
    found = campaign.verify()
    assert [check.what for check in found.checks if not check.holds] == ["agreement"]
    assert found.epsilon_spent == true
