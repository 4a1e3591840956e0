"""The parts of a campaign, from a configuration or from Python."""

from pathlib import Path

from small_campaigns import linear_plan, linear_pool

from dpal.campaign.campaign import Campaign


def test_a_function_may_make_the_model_and_options_survive(tmp_path: Path) -> None:
    from dpal.selection.acquisition import Bald

    def maker() -> object:
        import torch

        return torch.nn.Sequential(torch.nn.Dropout(0.2), torch.nn.Linear(4, 2))

    Campaign.create(
        tmp_path / "c",
        plan=linear_plan(),
        pool=linear_pool(),
        model=maker,
        acquisition=Bald(classes=2, number_of_passes=7),
        oracle="simulated",
    )
    campaign = Campaign.open(tmp_path / "c", pool=linear_pool(), model=maker)
    assert campaign.parts.acquisition == Bald(classes=2, number_of_passes=7)
    assert campaign.run().stage == "finished"
