"""Predictions for blocks: in full batches, and with dropout masks that depend on a chunk's place alone."""

import numpy as np
import pytest
import torch
from torch import nn

from dpal.training.block_prediction import BlockPredictor, one_thread
from dpal.training.settings import Scaling

WIDTH = 4
ROWS = np.random.default_rng(0).normal(size=(700, WIDTH)).astype(np.float32)


def predictor(model: nn.Module, seed: bytes = b"s") -> BlockPredictor:
    return BlockPredictor(model=model, device="cpu", precision="float32", scaling=Scaling(), seed=seed)


class Watching(nn.Linear):
    sizes: list[int]

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        self.sizes.append(len(rows))
        return super().forward(rows)


def test_the_last_rows_are_in_a_full_batch() -> None:
    model = Watching(WIDTH, 3)
    model.sizes = []
    found = predictor(model).logits(ROWS, block=0, start=0, passes=1)
    # 700 rows: two batches of one size, however many rows there are in the second.
    assert model.sizes == [512, 512] and found.shape == (700, 3)
    with torch.no_grad():
        expected = nn.functional.linear(torch.from_numpy(ROWS), model.weight, model.bias)
    assert found == pytest.approx(expected.numpy(), abs=1e-6)
    # A row's logits do not depend on how many follow, to the last bit.
    fewer = predictor(model).logits(ROWS[:600], block=0, start=0, passes=1)
    assert np.array_equal(fewer, found[:600])


def test_dropout_has_a_seed_of_its_own_for_every_chunk() -> None:
    model = nn.Sequential(nn.Linear(WIDTH, 8), nn.Dropout(0.5), nn.Linear(8, 3))

    def drawn(seed: bytes, block: int, start: int) -> tuple[float, ...]:
        before = torch.random.get_rng_state()
        found = predictor(model, seed).logits(ROWS[:9], block=block, start=start, passes=3)
        assert torch.equal(torch.random.get_rng_state(), before) and found.shape == (3, 9, 3)
        return tuple(found.ravel().tolist())

    assert drawn(b"s", 0, 0) == drawn(b"s", 0, 0)
    assert len({drawn(*place) for place in ((b"s", 0, 0), (b"s", 0, 8192), (b"s", 1, 0), (b"t", 0, 0))}) == 4


def test_arrays_by_name_are_filled_up_too() -> None:
    class Added(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(WIDTH, 2)

        def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
            return self.layer(first) + second

    values = {"first": ROWS[:5], "second": np.ones((5, 2), dtype=np.float32)}
    assert predictor(Added()).logits(values, block=0, start=0, passes=1).shape == (5, 2)


def test_the_number_of_threads_comes_back() -> None:
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), one_thread():
        assert torch.get_num_threads() == 1
        raise ZeroDivisionError
    assert torch.get_num_threads() == before
