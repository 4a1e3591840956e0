"""Predictions leave no trace in the model."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from dpal.data import from_arrays
from dpal.data.records import ArrayRecords
from dpal.errors import DpalError, InvalidArgument
from dpal.training.prediction import logits
from dpal.training.sources import TensorSource, source_for

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 1, 4, 4), dtype=np.uint8)


TARGETS = np.arange(40) % 3


SOME = np.array([5, 0, 39, 5])


def scaled_by_hand(values: NDArray[np.uint8]) -> NDArray[np.float64]:
    return (values / 255 - 0.5) / 0.25


def test_logits_are_the_models(tmp_path: Path) -> None:
    pool = from_arrays(IMAGES, classes=3, labels=TARGETS)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    model.train()
    for most_bytes in (0, 10**6):
        source = source_for(pool.records, TARGETS, device="cpu", most_bytes=most_bytes)
        found = logits(model, source, SOME, batch_size=3)
        expected = model(torch.from_numpy(scaled_by_hand(IMAGES[SOME])).float()).detach().numpy()
        assert np.allclose(found, expected, atol=1e-5)
    assert model.training
    with pytest.raises(DpalError, match="no record to predict"):
        logits(model, source, np.empty(0, dtype=np.int64))
    with pytest.raises(DpalError, match="records, classes"):
        logits(nn.Conv2d(1, 3, 3), source, SOME)


def test_logits_leave_the_model_as_it_was() -> None:
    source = source_for(ArrayRecords(IMAGES), TARGETS, device="cpu")
    model = nn.Sequential(nn.Flatten(), nn.Dropout(0.0), nn.Linear(16, 3))
    model.train()
    model[2].eval()  # kept out of training
    for passes, batch_size, message in ((2, 5, "dropout above 0"), (0, 5, "passes"), (1, 0, "batch_size")):
        with pytest.raises(InvalidArgument, match=message):
            logits(model, source, SOME, passes=passes, batch_size=batch_size)
        assert [module.training for module in model] == [True, True, False]
    logits(model, source, SOME)
    assert [module.training for module in (model, *model)] == [True, True, True, False]


def test_what_a_model_writes_down_while_it_predicts_does_not_stay() -> None:
    class Remembers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out = nn.Linear(3, 2)
            self.register_buffer("newest", torch.zeros(3))

        def forward(self, given: torch.Tensor) -> torch.Tensor:
            self.newest.copy_(given[-1])
            return self.out(given)

    model = Remembers()
    logits(model, TensorSource(torch.randn(5, 3), torch.zeros(5)), np.arange(5))
    assert torch.equal(model.newest, torch.zeros(3))


def test_a_buffer_that_a_model_replaces_or_adds_while_it_predicts_is_put_back() -> None:
    class Grows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out = nn.Linear(3, 2)
            self.register_buffer("table", torch.zeros(1))
            self.register_buffer("later", None)

        def forward(self, given: torch.Tensor) -> torch.Tensor:
            self.table = given[-1].detach().clone()
            self.later = given[0].detach().clone()
            return self.out(given)

    model = Grows()
    logits(model, TensorSource(torch.randn(5, 3), torch.zeros(5)), np.arange(5))
    assert torch.equal(model.table, torch.zeros(1))
    assert model.later is None
