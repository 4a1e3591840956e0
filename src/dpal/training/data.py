"""What the loop needs of data: batches by position, on the model's device."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpal.errors import InvalidArgument
from dpal.training.engine import Batch, record_count, rows


class Source(Protocol):
    """Labelled records by position."""

    def batch(self, positions: NDArray[np.int64]) -> tuple[Batch, Tensor]:
        """These records and their targets, on the device where training happens."""
        ...


class TensorSource:
    """Records and targets that are tensors already, kept where they are."""

    def __init__(self, inputs: Tensor | Mapping[str, Tensor], targets: Tensor) -> None:
        if record_count(inputs) != len(targets):
            raise InvalidArgument("the number of targets", len(targets), f"{record_count(inputs):,}, one a record")
        self.inputs, self.targets = inputs, targets

    def __len__(self) -> int:
        return len(self.targets)

    def batch(self, positions: NDArray[np.int64]) -> tuple[Batch, Tensor]:
        index = torch.from_numpy(positions).to(self.targets.device)
        return rows(self.inputs, index), self.targets[index]
