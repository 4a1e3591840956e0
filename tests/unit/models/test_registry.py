from pathlib import Path

import pytest
import torch
from networks import cross_entropy, plain_loop
from torch import nn

from dpal.errors import DpalError, InvalidArgument
from dpal.models.equivariant import (
    EquivariantResNet9,
)
from dpal.models.registry import MODELS, build_model
from dpal.models.resnet9 import ResNet9
from dpal.training.engines.engine_choice import engine_for


def test_every_name_builds() -> None:
    assert set(MODELS) == {
        "small-cnn",
        "resnet9",
        "eq-resnet9",
        "nfnet-f0",
        "text-classifier",
        "features",
        "fine-tuned",
    }
    assert build_model("resnet9", {"channels": 1, "classes": 8})(torch.zeros(2, 1, 16, 16)).shape == (2, 8)


def test_a_model_by_import_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "clinic_models.py").write_text(
        "from torch import nn\n\n\ndef small(width=4):\n    return nn.Linear(width, 2)\n\n\nnumber = 5\n\n\n"
        "def wrong():\n    return number\n\n\ndef fails():\n    return len(number)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    model = build_model("clinic_models:small", {"width": 7})
    assert isinstance(model, nn.Linear)
    assert model.in_features == 7
    for path, message in (
        ("clinic_models:none", "has no none"),
        ("clinic_models:number", "cannot be called"),
        ("clinic_models:wrong", "int instead of a torch module"),
        ("no_such_module:x", "PYTHONPATH"),
        ("resnet10", "resnet9"),
        (".clinic_models:small", "import path"),
        ("clinic_models:", "import path"),
    ):
        with pytest.raises(DpalError, match=message):
            build_model(path)
    with pytest.raises(InvalidArgument, match="depth"):
        build_model("clinic_models:small", {"depth": 3})
    # An error inside a user's function is shown as it is.
    with pytest.raises(TypeError, match="has no len"):
        build_model("clinic_models:fails")


@pytest.mark.parametrize("kind", [ResNet9, EquivariantResNet9])
def test_images_that_are_too_small_are_refused(kind: type[nn.Module]) -> None:
    with pytest.raises(InvalidArgument, match="at least 8"):
        kind()(torch.randn(2, 3, 7, 32))


def test_dropout_is_off_unless_asked_for() -> None:
    images = torch.randn(3, 3, 8, 8)
    for kind in (ResNet9, EquivariantResNet9):
        torch.manual_seed(0)
        plain, random = kind().train(), kind(dropout=0.5).train()
        assert torch.equal(plain(images), plain(images))
        assert not torch.equal(random(images), random(images))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "engine"),
    [(ResNet9(channels=1), "fused"), (EquivariantResNet9(channels=1, fields=(2, 4, 4)), "fused")],
    ids=["plain", "equivariant"],
)
def test_each_trains_with_the_engine_it_should_get(model: nn.Module, engine: str) -> None:
    images, targets = torch.randn(3, 1, 8, 8), torch.randint(0, 10, (3,))
    chosen = engine_for(model, cross_entropy, max_grad_norm=1.0, sample=(images, targets))
    assert chosen.name == engine
    _, wanted = plain_loop(model, images, targets, 1.0)
    found = chosen.clipped_sum(images, targets).gradients
    for name, each in wanted.items():
        torch.testing.assert_close(found[name], each.double(), rtol=0, atol=1e-4)
