"""What verify says is what the charges cost."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_campaigns import create, linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.campaign.verification import _sizes_check
from dpal.selection.cut import CutSelection
from dpal.selection.selection import NOBODY, Chosen


def test_a_seeded_campaign_says_so_everywhere(tmp_path: Path) -> None:
    campaign = create(tmp_path / "c")
    assert not campaign.run().is_private
    assert not campaign.verify().is_private
    assert not campaign.export_model(tmp_path / "m.safetensors")["is_private"]


@pytest.mark.parametrize("planner", ["naive", "step-amplification", "noise-reduction", "continual", "no-al"])
@pytest.mark.parametrize(
    ("selection", "accounting"), [("threshold", "branch"), ("laplace", "renyi"), ("laplace", "basic")]
)
def test_status_and_verify_give_one_number_at_any_time(
    tmp_path: Path, planner: str, selection: str, accounting: str
) -> None:
    """At every step of a campaign's life, what status shows is what the charges cost."""
    plan = linear_plan(planner=planner, selection=selection, accounting=accounting)
    shown: list[tuple[float, float]] = []

    def expert(name: str, record: object) -> str:
        status, found = campaign.status(), campaign.verify()
        assert found.holds, found.checks
        shown.append((status.epsilon_spent, found.epsilon_spent))
        return "yes" if name > "r10" else "no"

    campaign = Campaign.create(tmp_path / "c", plan=plan, pool=linear_pool(), model=linear_model(), oracle=expert)
    campaign.run()
    final = campaign.verify()
    shown.append((campaign.status().epsilon_spent, final.epsilon_spent))
    assert all(status == spent for status, spent in shown)
    assert final.holds
    assert abs(final.epsilon_spent - plan.epsilon) <= 1e-9


def test_a_cut_that_asks_for_everyone_verifies_and_does_not_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check that failed here, or a number in its detail, would tell about records."""
    details: set[str] = set()
    for number, count in enumerate((1, 16)):
        chosen = Chosen(to_label=np.arange(count), retired=NOBODY)
        monkeypatch.setattr(CutSelection, "_choose", lambda *_, chosen=chosen: chosen)
        campaign = Campaign.create(
            tmp_path / str(number),
            plan=linear_plan(query_sizes=(5,), selection="cut"),
            pool=linear_pool(),
            model=linear_model(),
            oracle="simulated",
        )
        campaign.run()
        assert len(campaign.state().groups[1]) == count
        found = campaign.verify()
        assert found.holds, found.checks
        details |= {check.detail for check in found.checks if check.what == "sizes"}
    assert len(details) == 1
    state = campaign.state()
    fewer = replace(state, selected=(replace(state.selected[0], to_label=state.groups[0][1:]), *state.selected[1:]))
    assert not _sizes_check(fewer, campaign.plan).holds


def test_a_cut_may_ask_for_more_than_were_planned_to_be_left(tmp_path: Path) -> None:
    # After a first cut that asked for nobody, the second one has more to choose from than its plan says.
    campaign = Campaign.create(
        tmp_path / "c",
        plan=linear_plan(selection="cut"),
        pool=linear_pool(),
        model=linear_model(),
        oracle="simulated",
        seed=7,
        not_private=True,
    )
    campaign.run()
    state, plan = campaign.state(), campaign.plan
    left = [name for name in linear_pool().ids.tolist() if name not in state.groups[0]]
    assert len(left) > plan.selections[1].unlabelled
    nobody, everybody = replace(state.selected[1], to_label=()), replace(state.selected[2], to_label=tuple(left))
    assert _sizes_check(replace(state, selected=(state.selected[0], nobody, everybody)), plan).holds
    twice = replace(nobody, to_label=tuple(f"another {number}" for number in range(len(left))))
    assert not _sizes_check(replace(state, selected=(state.selected[0], twice, everybody)), plan).holds
