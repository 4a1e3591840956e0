"""What the loop needs of data: batches by position, on the model's device."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpal.errors import InvalidArgument
from dpal.training.engine import Batch, record_count, rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Bytes to numbers around zero: (value / 255 − mean) / deviation. Public constants, not learnt from the pool."""

    mean: float = 0.5
    deviation: float = 0.25

    def __post_init__(self) -> None:
        if not self.deviation > 0:
            raise InvalidArgument("deviation", self.deviation, "above 0")

    def __call__(self, batch: Batch) -> Batch:
        """Bytes are scaled; anything else is as it should be already."""
        if isinstance(batch, Tensor):
            if batch.dtype != torch.uint8:
                return batch
            return batch.float().mul_(1 / (255 * self.deviation)).sub_(self.mean / self.deviation)
        return {name: self(part) for name, part in batch.items()}  # pyright: ignore[reportReturnType]


class Source(Protocol):
    """Labelled records by position."""

    def batch(self, positions: NDArray[np.int64]) -> tuple[Batch, Tensor]:
        """These records and their targets, on the device where training happens."""
        ...

    def stream(self, parts: Iterable[NDArray[np.int64]]) -> Iterator[tuple[Batch, Tensor]]:
        """One batch after the other. A source that has to read may read ahead."""
        ...


class TensorSource:
    """Records and targets that are tensors already, kept where and as they are: bytes stay bytes until used."""

    def __init__(
        self, inputs: Tensor | Mapping[str, Tensor], targets: Tensor, *, scaling: Scaling | None = None
    ) -> None:
        if record_count(inputs) != len(targets):
            raise InvalidArgument("the number of targets", len(targets), f"{record_count(inputs):,}, one a record")
        self.inputs, self.targets, self.scaling = inputs, targets, scaling or Scaling()

    def __len__(self) -> int:
        return len(self.targets)

    def batch(self, positions: NDArray[np.int64]) -> tuple[Batch, Tensor]:
        index = torch.from_numpy(positions).to(self.targets.device)
        return self.scaling(rows(self.inputs, index)), self.targets[index]

    def stream(self, parts: Iterable[NDArray[np.int64]]) -> Iterator[tuple[Batch, Tensor]]:
        return (self.batch(part) for part in parts)

    def with_targets(self, targets: Tensor) -> "TensorSource":
        """The same records with other targets."""
        return TensorSource(self.inputs, targets, scaling=self.scaling)
