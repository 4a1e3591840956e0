"""The parts of a campaign, from a configuration or from Python."""

from pathlib import Path

import numpy as np
import pytest
from small_campaigns import linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.campaign.config import checked_config
from dpal.campaign.parts import parts_of
from dpal.errors import BadData


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


def test_an_error_about_the_held_out_set_says_so_and_speaks_of_units_only_if_they_are_wrong(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.zeros((6, 4), dtype=np.float32))
    np.save(tmp_path / "labels.npy", np.arange(6) % 2)
    options = {"file": str(tmp_path / "rows.npy"), "labels": str(tmp_path / "labels.npy"), "classes": ["a", "b"]}
    (tmp_path / "all.csv").write_text("id,unit\n" + "".join(f"{row},p{row}\n" for row in range(6)))
    (tmp_path / "few.csv").write_text("id,unit\n0,q0\n")

    def notes(evaluation: dict[str, object], unit: str) -> str:
        document = {
            "data": {"source": "numpy", "options": options, "unit": {"file": str(tmp_path / "all.csv")}},
            "evaluation": {"source": "numpy", "options": evaluation, "is_public": True, "unit": {"file": unit}},
            "model": {"name": "torch.nn:Identity"},
        }
        with pytest.raises(BadData) as refused:
            parts_of(checked_config(document))
        return " ".join(refused.value.__notes__)

    about_units = notes(options, str(tmp_path / "few.csv"))
    assert "about the held-out set" in about_units
    assert "evaluation.shares_no_unit: true" in about_units
    about_labels = notes(options | {"classes": ["a"]}, str(tmp_path / "few.csv"))
    assert "about the held-out set" in about_labels
    assert "shares_no_unit" not in about_labels
