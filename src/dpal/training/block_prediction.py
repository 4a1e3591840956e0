"""Predictions for blocks of a pool that is never in memory: the same bits in any process, whatever else is there."""

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dpal.training.prediction import BATCH_SIZE, logits
from dpal.training.settings import Scaling
from dpal.training.sources import source_for


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPredictor:
    """A model that predicts for rows in batches of one size: blanks fill the last one up."""

    model: nn.Module = field(repr=False)
    device: str
    precision: str
    scaling: Scaling
    # For dropout: every chunk of a block has a seed of its own, made of this one and its place.
    seed: bytes = field(repr=False)

    def logits(self, values: Any, *, block: int, start: int, passes: int) -> NDArray[np.float32]:
        """The logits of the rows of this block from this one on, as `prediction.logits` gives them."""
        count = len(values if isinstance(values, np.ndarray) else next(iter(values.values())))
        records = _Rows(_filled_up(values), count + -count % BATCH_SIZE)
        device = torch.device(self.device)
        source = source_for(records, np.zeros(len(records), dtype=np.int64), device=device, scaling=self.scaling)
        place = self.seed + block.to_bytes(8, "little") + start.to_bytes(8, "little")
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(int.from_bytes(hashlib.sha256(place).digest()[:7], "little"))
            predicted = logits(
                self.model.to(device),
                source,
                np.arange(len(records)),
                passes=passes,
                precision=self.precision,
                words="scoring",
            )
        return predicted[..., :count, :]


@contextmanager
def one_thread() -> Generator[None]:
    """One thread of torch: several could give other last bits in another process."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Rows:
    """Rows in memory, as a source reads them."""

    bytes_each = 0

    def __init__(self, values: Any, count: int) -> None:
        self.values, self.count = values, count

    def __len__(self) -> int:
        return self.count

    @property
    def form(self) -> dict[str, Any]:
        return dict(self.values) if isinstance(self.values, dict) else {"": self.values}

    def read(self, positions: NDArray[np.int64]) -> Any:
        if isinstance(self.values, dict):
            return {name: array[positions] for name, array in self.values.items()}
        return self.values[positions]


def _filled_up(values: Any) -> Any:
    if isinstance(values, dict):
        return {name: _filled_up(array) for name, array in values.items()}
    missing = -len(values) % BATCH_SIZE
    if not missing:
        return values
    return np.concatenate([values, np.zeros((missing, *values.shape[1:]), dtype=values.dtype)])
