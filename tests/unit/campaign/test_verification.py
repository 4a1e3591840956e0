"""What verify says is what the charges cost."""

from pathlib import Path

import pytest
from small_campaigns import create, linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign


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
