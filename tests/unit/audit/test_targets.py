"""What is attacked is a plan's file, or a campaign's plan with its settings; nobody's records are read."""

from pathlib import Path

import pytest
from audited_plans import plan

from dpal.audit.targets import target_of_campaign, target_of_plan
from dpal.campaign.campaign import Campaign
from dpal.data.named.registry import load_dataset
from dpal.errors import DamagedCampaign, MissingData
from dpal.planning.request import PlanRequest
from dpal.training import ComputeSettings, TrainingSettings


def test_a_plans_file(tmp_path: Path) -> None:
    for made, rows in ((plan(), 1), (plan(unit="patient"), 4)):
        file = tmp_path / "plan.json"
        file.write_text(made.to_text(), encoding="utf-8")
        target = target_of_plan(file)
        assert (target.plan, target.rows_per_unit) == (made, rows)
    with pytest.raises(MissingData, match="dpal plan --json"):
        target_of_plan(tmp_path / "nothing.json")


def test_an_edited_plan_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(plan().to_text().replace('"steps": ', '"steps": 1'), encoding="utf-8")
    with pytest.raises(Exception, match=r"ε|steps|objective|plan"):
        target_of_plan(file)


def test_a_campaigns_plan_and_settings_without_its_records(tmp_path: Path) -> None:
    pool = load_dataset("digits")
    made = PlanRequest(target_epsilon=8, query_sizes=(100,), epochs=2).plan(len(pool))
    folder = tmp_path / "trial"
    Campaign.create(
        folder,
        plan=made,
        pool=pool,
        model="small-cnn",
        oracle="simulated",
        training=TrainingSettings(max_grad_norm=0.5),
        compute=ComputeSettings(device="cpu"),
    )
    # Neither records nor fingerprints of them are needed.
    (folder / "contents.db").unlink()
    target = target_of_campaign(folder)
    assert target.plan == made
    assert (target.max_grad_norm, target.device, target.rows_per_unit) == (0.5, "cpu", 1)
    with pytest.raises(DamagedCampaign, match="dpal init"):
        target_of_campaign(tmp_path / "nothing")
