"""Layers that use one parameter several times, in a way that the fused engine can undo."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional


class TiedConvolution(nn.Module, ABC):
    """A convolution, kernel 3 and padding 1, whose filters are moved copies of one weight (fields, …, 3, 3)."""

    weight: nn.Parameter

    @property
    @abstractmethod
    def ties(self) -> int:
        """How many copies of the weight the filters hold."""

    @abstractmethod
    def filters(self) -> Tensor:
        """All filters: (ties · fields, channels, 3, 3)."""

    @abstractmethod
    def untied(self, images: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and output gradients (rows · ties, …) of plain convolutions with the weight.

        The gradient of a row is the sum over its `ties` convolutions, whose channels are those of the flattened weight.
        """

    def plain(self) -> nn.Conv2d:
        """The shape of the plain convolutions, without values. Made once, since tracers record how layers are made."""
        kept = vars(self).get("_plain")
        if kept is None:
            fields, inside = self.weight.shape[0], self.weight[0].numel() // 9
            # In a tuple, so that torch does not make it part of the model.
            kept = (nn.Conv2d(inside, fields, 3, padding=1, bias=False, device="meta"),)
            vars(self)["_plain"] = kept
        return kept[0]

    def forward(self, images: Tensor) -> Tensor:
        return functional.conv2d(images, self.filters(), padding=1)


class TiedGroupNorm(nn.Module):
    """A group norm in which `ties` neighbouring channels share a weight and a bias."""

    eps = 1e-5

    def __init__(self, fields: int, ties: int, groups: int) -> None:
        super().__init__()
        self.ties, self.groups = ties, groups
        self.weight, self.bias = nn.Parameter(torch.ones(fields)), nn.Parameter(torch.zeros(fields))

    def forward(self, features: Tensor) -> Tensor:
        weight, bias = (vector.repeat_interleave(self.ties) for vector in (self.weight, self.bias))
        return functional.group_norm(features, self.groups, weight, bias, self.eps)
