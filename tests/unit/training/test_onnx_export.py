"""ONNX gives the model's own outputs, for any number of records, with the scaling inside."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dpal.errors import DpalError
from dpal.models import ResNet9, SmallCNN
from dpal.training.onnx_export import export_onnx
from dpal.training.settings import Scaling
from dpal.training.sources import scaled

runtime = pytest.importorskip("onnxruntime")
SCALING = Scaling(mean=0.3, deviation=0.2)


class TwoParts(nn.Module):
    """Token numbers and a mask, as text models have."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.output = nn.Embedding(9, 4), nn.Linear(4, 3)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> SimpleNamespace:
        mask = attention_mask[..., None].float()
        mean = (self.words(input_ids) * mask).sum(1) / mask.sum(1).clamp(min=1)
        return SimpleNamespace(logits=self.output(mean))


def part(dtype: type, *shape: int) -> SimpleNamespace:
    return SimpleNamespace(dtype=np.dtype(dtype), shape=shape)


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("model", [SmallCNN(channels=3, classes=4), ResNet9(channels=3, classes=4)])
def test_bytes_go_in_and_logits_come_out(tmp_path: Path, model: nn.Module, rows: int) -> None:
    model.train()
    export_onnx(tmp_path / "m.onnx", model, {"": part(np.uint8, 3, 16, 16)}, SCALING)
    assert model.training
    model.eval()
    values = np.random.default_rng(1).integers(0, 256, (rows, 3, 16, 16), dtype=np.uint8)
    (found,) = runtime.InferenceSession(tmp_path / "m.onnx").run(["logits"], {"records": values})
    with torch.inference_mode():
        expected = model(scaled(torch.from_numpy(values), SCALING))
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-4)


def test_parts_have_their_own_names(tmp_path: Path) -> None:
    model = TwoParts().eval()
    form = {"input_ids": part(np.int64, 6), "attention_mask": part(np.int64, 6)}
    export_onnx(tmp_path / "m.onnx", model, form, SCALING)
    rng = np.random.default_rng(1)
    batch = {"input_ids": rng.integers(0, 9, (4, 6)), "attention_mask": rng.integers(0, 2, (4, 6))}
    (found,) = runtime.InferenceSession(tmp_path / "m.onnx").run(["logits"], batch)
    with torch.inference_mode():
        expected = model(**{name: torch.from_numpy(values) for name, values in batch.items()}).logits
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)


def test_nothing_of_the_machine_is_in_it(tmp_path: Path) -> None:
    """The exporter itself would note source files and their lines."""
    export_onnx(tmp_path / "m.onnx", SmallCNN(channels=1, classes=2), {"": part(np.uint8, 1, 8, 8)}, SCALING)
    content = (tmp_path / "m.onnx").read_bytes()
    assert b".py" not in content and b"File " not in content


class Undecided(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return values if values.sum().item() > 0 else -values


def test_what_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(DpalError, match="leave --onnx out"):
        export_onnx(tmp_path / "m.onnx", Undecided(), {"": part(np.float32, 3)}, SCALING)
    assert list(tmp_path.iterdir()) == []
