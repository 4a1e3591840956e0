"""ResNet-9 with group norm, Mish and scale normalisation: a norm after each residual sum (arXiv:2203.00324)."""

import torch
from torch import Tensor, nn

from dpal.errors import InvalidArgument

_SMALLEST_SIDE = 8


class ConvBlock(nn.Module):
    """Convolution, group norm, Mish and, if asked for, a pool that halves the sides."""

    def __init__(self, channels_in: int, channels_out: int, *, groups: int, pool: bool = False) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False)
        self.norm = nn.GroupNorm(min(groups, channels_out), channels_out)
        self.activation = nn.Mish()
        self.pool = nn.MaxPool2d(2) if pool else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        return self.pool(self.activation(self.norm(self.convolution(images))))


class Residual(nn.Module):
    """Two blocks around a shortcut, and the norm that gives the sum its scale back."""

    def __init__(self, channels: int, *, groups: int) -> None:
        super().__init__()
        self.blocks = nn.Sequential(
            ConvBlock(channels, channels, groups=groups), ConvBlock(channels, channels, groups=groups)
        )
        self.norm = nn.GroupNorm(min(groups, channels), channels)

    def forward(self, images: Tensor) -> Tensor:
        return self.norm(images + self.blocks(images))


class ResNet9(nn.Module):
    """The paper's network, about 2.4 million parameters, for 1 or 3 channels (or more) and sides from 8."""

    def __init__(self, *, channels: int = 3, classes: int = 10, groups: int = 32, dropout: float = 0.0) -> None:
        super().__init__()
        for name, value in (("channels", channels), ("classes", classes), ("groups", groups)):
            if value < 1:
                raise InvalidArgument(name, value, "at least 1")
        self.features = nn.Sequential(
            ConvBlock(channels, 64, groups=groups),
            ConvBlock(64, 128, groups=groups, pool=True),
            Residual(128, groups=groups),
            ConvBlock(128, 256, groups=groups, pool=True),
            ConvBlock(256, 256, groups=groups, pool=True),
            Residual(256, groups=groups),
        )
        self.pool = nn.AdaptiveMaxPool2d(2)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(4 * 256, classes)

    def forward(self, images: Tensor) -> Tensor:
        if min(images.shape[-2:]) < _SMALLEST_SIDE:
            raise InvalidArgument(
                "the size of the images",
                tuple(images.shape[-2:]),
                f"at least {_SMALLEST_SIDE} × {_SMALLEST_SIDE}: three pools each halve the sides",
            )
        pooled = torch.flatten(self.pool(self.features(images)), start_dim=1)
        return self.classifier(self.dropout(pooled))
