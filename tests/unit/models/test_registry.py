from pathlib import Path

import pytest
import torch
from torch import nn

from dpal.errors import InvalidArgument
from dpal.models.registry import MODELS, build_model


def test_every_name_builds() -> None:
    assert set(MODELS) == {"small-cnn", "resnet9", "eq-resnet9", "nfnet-f0", "text-classifier"}
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
        ("clinic_models:wrong", "'int'.*torch module"),
        ("no_such_module:x", "PYTHONPATH"),
        ("resnet10", "resnet9"),
        (".clinic_models:small", "import path"),
        ("clinic_models:", "import path"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            build_model(path)
    with pytest.raises(InvalidArgument, match="depth"):
        build_model("clinic_models:small", {"depth": 3})
    # An error inside a user's function is shown as it is.
    with pytest.raises(TypeError, match="has no len"):
        build_model("clinic_models:fails")
