"""Losses with one value per record, which clipping by record needs.

A loss of your own takes the model's outputs and the targets, and returns a tensor of shape (records,).
"""

from torch import Tensor
from torch.nn import functional

from dpal.training.batches import LossFunction


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """For one class per record. Targets are class numbers."""
    return functional.cross_entropy(outputs.float(), targets.long(), reduction="none")


def binary_cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """For several labels per record: the mean over the labels. Targets are between 0 and 1."""
    return functional.binary_cross_entropy_with_logits(outputs.float(), targets.float(), reduction="none").mean(dim=1)


def loss_for(*, multi_label: bool) -> LossFunction:
    """The loss for a pool with one class per record, or with several labels."""
    return binary_cross_entropy if multi_label else cross_entropy
