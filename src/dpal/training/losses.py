"""Losses with one value a record, as clipping by record needs them."""

from torch import Tensor
from torch.nn import functional

from dpal.training.engines.engine import LossFunction


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """For one class a record; targets are class numbers."""
    return functional.cross_entropy(outputs.float(), targets.long(), reduction="none")


def binary_cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """For several labels a record; targets are between 0 and 1. The mean over the labels."""
    return functional.binary_cross_entropy_with_logits(outputs.float(), targets.float(), reduction="none").mean(dim=1)


def loss_for(*, multi_label: bool) -> LossFunction:
    """The loss of a pool."""
    return binary_cross_entropy if multi_label else cross_entropy
