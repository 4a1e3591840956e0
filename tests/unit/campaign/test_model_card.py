"""The card for people: its facts, and its own code, which runs as it stands and gives the campaign's predictions."""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from small_campaigns import create, linear_campaign, small_pool

from dpal.campaign.campaign import Campaign
from dpal.campaign.model_card import model_card


def exported(campaign: Campaign, file: Path, **options: bool) -> tuple[dict[str, Any], str]:
    card = campaign.export_model(file, **options)
    return card, file.with_name(f"{file.name}.md").read_text(encoding="utf-8")


def run_blocks(text: str, folder: Path, **names: object) -> list[dict[str, Any]]:
    """Run each block of code of the card in its folder."""
    results = []
    before = Path.cwd()
    os.chdir(folder)
    try:
        for code in re.findall(r"(?s)```python\n(.*?)```", text):
            scope: dict[str, Any] = dict(names)
            exec(code, scope)  # noqa: S102 - the card's own code is what is tested
            results.append(scope)
    finally:
        os.chdir(before)
    return results


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    made = create(tmp_path_factory.mktemp("card") / "c", seed=None)
    made.run(go_on=True)
    return made


def test_the_card_says_what_was_promised(campaign: Campaign, tmp_path: Path) -> None:
    card, text = exported(campaign, tmp_path / "model.safetensors")
    _, front, body = text.split("---\n", 2)
    assert yaml.safe_load(front)["tags"] == ["differential-privacy", "active-learning"]
    for words in (
        "Every record of the private pool is protected, whether or not it was trained on: ε = ",
        "at δ = 0.001.",
        card["sha256"],
        card["ledger_hash"],
        card["selections_in_words"],
    ):
        assert words in body, words
    assert "None" not in text
    for words in (text, (tmp_path / "model.safetensors.json").read_text(encoding="utf-8")):
        assert str(tmp_path) not in words and str(campaign.folder) not in words


def test_what_records_are(campaign: Campaign, tmp_path: Path) -> None:
    """Numbers are neither images nor made of bytes."""
    _, text = exported(campaign, tmp_path / "model.safetensors")
    assert "pipeline_tag: image-classification" in text and "Bytes become" in text
    numbers = linear_campaign(tmp_path / "c")
    numbers.run(go_on=True)
    _, text = exported(numbers, tmp_path / "numbers.safetensors")
    assert "pipeline_tag: tabular-classification" in text and "Bytes become" not in text


def test_its_code_runs_and_predicts_the_same(campaign: Campaign, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    import torch

    card, text = exported(campaign, tmp_path / "model.safetensors", onnx=True)
    assert card["onnx"]["file"] == "model.onnx"
    records = small_pool("test", 7).records.read(np.arange(7))
    expected = campaign.runner.model.at(campaign.state()).logits_of(small_pool("test", 7).records)
    with_onnx, with_torch = run_blocks(text, tmp_path, records=records)
    np.testing.assert_allclose(with_onnx["logits"], expected, atol=1e-4)
    scaling = card["inputs"][0]["scaling"]
    values = (torch.from_numpy(records).float() / 255 - scaling["mean"]) / scaling["deviation"]
    with torch.inference_mode():
        np.testing.assert_allclose(with_torch["model"](values).numpy(), expected, atol=1e-4)


def test_a_campaign_that_is_not_private_says_so(tmp_path: Path) -> None:
    made = linear_campaign(tmp_path / "c", seed=7, not_private=True)
    made.run()
    card, text = exported(made, tmp_path / "m.safetensors")
    assert "**Not private**" in text and "promise protects" not in text
    assert "for the network that the campaign was made with" in text
    assert "several of them" in model_card(card, multi_label=True)
