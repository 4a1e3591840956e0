"""What cannot work is refused when a campaign is made, before anything is charged."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from small_campaigns import create, linear_model, linear_plan, linear_pool, small_pool

from dpal.campaign.campaign import Campaign
from dpal.data import from_arrays
from dpal.errors import InvalidArgument
from dpal.models.registry import build_model


def made(folder: Path, **options: Any) -> Campaign:
    options = {"plan": linear_plan(), "pool": linear_pool(), "model": linear_model()} | options
    return Campaign.create(folder, **options)


def test_bald_needs_dropout_from_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="dropout above 0"):
        made(tmp_path / "c", acquisition="bald")
    assert not (tmp_path / "c").exists()


def test_a_pool_without_labels_cannot_simulate_people(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="no labels of its own"):
        made(tmp_path / "c", pool=replace(linear_pool(), labels=None), oracle="simulated")


def test_a_held_out_set_of_another_shape_is_refused(tmp_path: Path) -> None:
    others = from_arrays(np.zeros((3, 5), dtype=np.float32), classes=["no", "yes"], labels=[0, 1, 0])
    with pytest.raises(InvalidArgument, match=r"evaluation's records is \(5,\), but must be \(4,\)"):
        made(tmp_path / "c", evaluation=others, evaluation_is_public=True)


def test_a_learning_rate_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="learning_rate is -1"):
        made(tmp_path / "c", training={"learning_rate": -1})


def test_yaml_that_reads_no_as_false_is_noticed() -> None:
    with pytest.raises(InvalidArgument, match="names in quotes"):
        from_arrays(np.zeros((2, 2)), classes=[False, True])
    assert from_arrays(np.zeros((2, 2)), classes=[1, 2]).classes == ("1", "2")


def test_classes_called_by_numbers_can_be_simulated(tmp_path: Path) -> None:
    pool = replace(linear_pool(), classes=("1", "2"))
    campaign = made(tmp_path / "c", pool=pool, oracle="simulated")
    assert campaign.run().stage == "finished"
    labels = dict(zip(pool.ids.tolist(), pool.labels.tolist(), strict=True))
    assert all(labels[name] == answer for name, answer in campaign.state().answers.items())


def test_an_exported_model_can_be_used_by_what_its_card_says(tmp_path: Path) -> None:
    campaign = create(tmp_path / "c")
    campaign.run()
    card = campaign.export_model(tmp_path / "model.safetensors")
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
