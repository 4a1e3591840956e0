"""What training asks of the processes that train one phase together. Where only one does, it asks nothing."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeVar

from torch import Tensor

from dpal.training.engines.clipping import Gradients

Item = TypeVar("Item")


class Processes(ABC):
    """The processes of a phase. Each has the same model, records, draw and noise, and clips its share of the draw."""

    rank: int = 0
    count: int = 1

    def share(self, batches: Sequence[Item]) -> Sequence[Item]:
        """The physical batches that this process computes. How many that are is private."""
        return batches[self.rank :: self.count]

    @abstractmethod
    def send(self, message: bytes) -> None:
        """Tell all other processes. Only rank 0 may."""

    @abstractmethod
    def summed(self, total: Gradients, not_finite: Tensor) -> tuple[Gradients, Tensor]:
        """The sum of a step's clipped gradients, and of the numbers of broken ones, over all processes."""

    @abstractmethod
    def all_agree(self, holds: bool) -> bool:
        """Whether something holds in every process."""

    @abstractmethod
    def require_same(self, what: str, value: str) -> None:
        """Refuse to go on if the processes differ in this, which is named in the error; the value is not."""


class OneProcess(Processes):
    """There is nobody else."""

    def send(self, message: bytes) -> None:
        pass

    def summed(self, total: Gradients, not_finite: Tensor) -> tuple[Gradients, Tensor]:
        return total, not_finite

    def all_agree(self, holds: bool) -> bool:
        return holds

    def require_same(self, what: str, value: str) -> None:
        pass
