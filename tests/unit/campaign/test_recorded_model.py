"""The model has the weights that the facts name, and its export can be used elsewhere."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pictures import pixels, write_png
from safetensors.torch import load_file
from small_campaigns import create, linear_campaign, linear_model, linear_opened, linear_plan, linear_pool, small_pool
from tiny_bert import write_tiny_bert
from tiny_encoder import TinyEncoder, encoded_campaign

from dpal.campaign.campaign import Campaign
from dpal.campaign.config import checked_config
from dpal.campaign.files import digest
from dpal.data import from_image_folder
from dpal.errors import DamagedCampaign
from dpal.models.encoders import as_encoder
from dpal.models.features import Features
from dpal.models.heads import FeatureHead
from dpal.models.registry import build_model
from dpal.reports.campaign_data import report_data


def test_a_model_of_another_shape_is_refused_before_any_charge(tmp_path: Path) -> None:
    Campaign.create(tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model(), oracle="simulated")
    campaign = Campaign.open(tmp_path / "c", pool=linear_pool(), model=torch.nn.Linear(4, 3))
    with pytest.raises(DamagedCampaign, match=r"initial\.safetensors"):
        campaign.run()
    assert [charge.kind for _, charge in campaign.state().charges] == ["charged-selection"]


def test_an_exported_model_can_be_used_by_what_its_card_says(tmp_path: Path) -> None:
    campaign = create(tmp_path / "c")
    campaign.run()
    card = campaign.export_model(tmp_path / "model.safetensors")
    assert json.loads((tmp_path / "model.safetensors.json").read_text()) == card
    model = build_model(card["model"]["name"], card["model"]["options"])
    model.load_state_dict(load_file(tmp_path / "model.safetensors"))
    model.eval()
    (inputs,) = card["inputs"]
    pixels = small_pool("test", 60).records.read(np.arange(60))
    assert list(pixels.shape[1:]) == inputs["shape"] and str(pixels.dtype) == inputs["kind"]
    values = torch.from_numpy(pixels).float()
    if inputs["scaling"] is not None:
        values = (values / 255 - inputs["scaling"]["mean"]) / inputs["scaling"]["deviation"]
    found = model(values).argmax(1).numpy()
    accuracy = float((found == small_pool("test", 60).labels).mean())
    assert accuracy == pytest.approx(campaign.state().evaluated[-1].metrics["accuracy"])


def test_an_exported_head_can_be_used_by_what_its_card_says(tmp_path: Path) -> None:
    campaign = encoded_campaign(tmp_path / "c", model=Features(encoder=TinyEncoder(), hidden=6))
    campaign.run()
    card = campaign.export_model(tmp_path / "model.safetensors")
    encoder = card["encoder"]
    assert (encoder["name"], encoder["side"], encoder["trained_on"]) == (
        "tiny_encoder:TinyEncoder",
        16,
        "nothing: its weights are constants",
    )
    (records,) = encoder["records"]
    assert (records["shape"], records["kind"], records["preparation"]) == ([1, 8, 8], "uint8", None)
    assert len(encoder["sha256"]) == 64 and "bicubic" in encoder["interpolation"]
    pool = small_pool("test", 60)
    rows = as_encoder(TinyEncoder(), side=encoder["side"]).encode(pool.records.read(np.arange(60)))
    # As `how_to_use` says.
    assert "head = dpal.models.FeatureHead([16], 10, hidden=6)" in encoder["how_to_use"]
    head = FeatureHead([16], 10, hidden=6)
    head.load_state_dict(load_file(tmp_path / "model.safetensors"))
    accuracy = float((head(torch.from_numpy(rows)).argmax(1).numpy() == pool.labels).mean())
    assert accuracy == pytest.approx(campaign.state().evaluated[-1].metrics["accuracy"], abs=0.02)


def test_an_export_does_not_tell_where_a_text_model_lies(tmp_path: Path) -> None:
    bert = write_tiny_bert(tmp_path / "private place" / "bert")
    config = checked_config(
        {
            "data": {
                "source": "table",
                "options": {"file": str(_notes(tmp_path)), "text": "note", "classes": ["x", "y"]},
            },
            "model": {"name": "features", "options": {"encoder": "transformers:private place/bert", "max_length": 16}},
            "plan": {"target_epsilon": 8, "target_delta": 1e-3, "initial_size": 8, "query_sizes": [], "batch_size": 4},
        }
        | {"training": {"features_cache": "cache"}}
    )
    campaign = Campaign.from_config(tmp_path / "c", config, base=tmp_path)
    assert campaign.config.model is not None
    assert campaign.config.model.options["encoder"] == f"transformers:{bert}"
    assert (tmp_path / "cache" / "features.db").is_file()
    assert campaign.status().encoder is not None
    campaign.run()
    campaign.add_answers(dict.fromkeys(campaign.state().groups[0], "x"), source="test")
    campaign.run()
    shown = json.dumps([campaign.export_model(tmp_path / "model.safetensors"), report_data(tmp_path / "c")])
    assert "transformers:bert" in shown
    assert "private place" not in shown


def _notes(folder: Path) -> Path:
    table = folder / "notes.csv"
    table.write_text("note\n" + "".join(f"a man runs . {'fever ' * (number % 5)}no {number}\n" for number in range(24)))
    return table


@pytest.mark.parametrize("average", [0.9, None])
def test_the_recorded_hash_is_that_of_the_exported_model(tmp_path: Path, average: float | None) -> None:
    campaign = linear_campaign(tmp_path / "c", linear_pool(), training={"average": average})
    campaign.run()
    trained = campaign.state().trained
    assert len({each.export_sha256 for each in trained}) == len(trained) == 3
    for number in range(2):
        file = tmp_path / f"{number}.safetensors"
        card = linear_opened(tmp_path / "c", linear_pool()).export_model(file)
        assert card["sha256"] == digest(file) == trained[-1].export_sha256
    assert not list((tmp_path / "c/checkpoints").glob(".*"))


def test_a_checkpoint_tells_nothing_but_weights(tmp_path: Path) -> None:
    from safetensors import safe_open

    campaign = linear_campaign(tmp_path / "c", linear_pool())
    campaign.run()
    for each in campaign.state().trained:
        with safe_open(tmp_path / "c" / each.file, framework="np") as file:
            assert not file.metadata()


def test_the_card_says_how_images_are_prepared(tmp_path: Path) -> None:
    for number in range(24):
        write_png(tmp_path / f"pool/{number % 2}/{number}.png", pixels(number))
    options: dict[str, Any] = {"classes": 2, "size": 8, "channels": 1, "labels_from_folders": True}
    campaign = Campaign.create(
        tmp_path / "c",
        plan=linear_plan(),
        pool=from_image_folder(tmp_path / "pool", **options),
        model="small-cnn",
        oracle="simulated",
    )
    campaign.run()
    (inputs,) = campaign.export_model(tmp_path / "m.safetensors")["inputs"]
    assert "resized to 8 × 8 pixels" in inputs["preparation"]
