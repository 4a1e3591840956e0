"""NFNet-F0 (arXiv:2102.06171): a deep network without layers that normalise over records.

Parameters are named as in timm's dm_nfnet_f0, so that its published weights load.
"""

from collections import OrderedDict

import torch
from torch import Tensor, nn
from torch.nn import functional

# Keeps the variance of GELU's output at 1.
_GELU_GAIN = 1.7015043497085571
_ALPHA = 0.2
_GROUP_SIZE = 128
_ATTENTION_GAIN = 2.0


class ScaledGelu(nn.Module):
    def forward(self, given: Tensor) -> Tensor:
        return functional.gelu(given) * _GELU_GAIN


class StandardisedConvolution(nn.Conv2d):
    """A convolution whose filters have mean 0 and a learned scale, padded so that a stride divides the size."""

    def __init__(self, channels_in: int, channels_out: int, side: int, *, stride: int = 1, groups: int = 1) -> None:
        super().__init__(channels_in, channels_out, side, stride=stride, groups=groups, bias=True)
        self.gain = nn.Parameter(torch.ones(channels_out, 1, 1, 1))
        self.scale = self.weight[0].numel() ** -0.5

    def forward(self, given: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        # Statistics over each filter's own weights.
        flat = self.weight.reshape(1, self.out_channels, -1)
        gain = (self.gain * self.scale).flatten()
        standard = functional.batch_norm(flat, None, None, weight=gain, training=True, momentum=0.0, eps=1e-5)
        return functional.conv2d(
            _same_padded(given, self.kernel_size[0], self.stride[0]),
            standard.reshape_as(self.weight),
            self.bias,
            self.stride,
            groups=self.groups,
        )


def _same_padded(given: Tensor, side: int, stride: int) -> Tensor:
    height, width = (max((-(-size // stride) - 1) * stride + side - size, 0) for size in given.shape[-2:])
    if not height and not width:
        return given
    return functional.pad(given, (width // 2, width - width // 2, height // 2, height - height // 2))


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(channels, channels // 2, 1), nn.Conv2d(channels // 2, channels, 1)

    def forward(self, given: Tensor) -> Tensor:
        weights = self.fc2(functional.relu(self.fc1(given.mean((2, 3), keepdim=True))))
        return given * weights.sigmoid()


class Downsample(nn.Module):
    def __init__(self, channels_in: int, channels_out: int, *, stride: int) -> None:
        super().__init__()
        pool = nn.AvgPool2d(2, stride, ceil_mode=True, count_include_pad=False)
        self.pool = pool if stride > 1 else nn.Identity()
        self.conv = StandardisedConvolution(channels_in, channels_out, 1)

    def forward(self, given: Tensor) -> Tensor:
        return self.conv(self.pool(given))


class Block(nn.Module):
    """A bottleneck with two grouped convolutions inside and a gain that starts at 0: it begins as the identity."""

    def __init__(self, channels_in: int, channels_out: int, *, stride: int, expected_variance: float) -> None:
        super().__init__()
        inside = channels_out // 2
        groups = inside // _GROUP_SIZE
        self.input_scale = expected_variance**-0.5
        changes = channels_in != channels_out or stride != 1
        self.downsample = Downsample(channels_in, channels_out, stride=stride) if changes else None
        self.activation = ScaledGelu()
        self.conv1 = StandardisedConvolution(channels_in, inside, 1)
        self.conv2 = StandardisedConvolution(inside, inside, 3, stride=stride, groups=groups)
        self.conv2b = StandardisedConvolution(inside, inside, 3, groups=groups)
        self.conv3 = StandardisedConvolution(inside, channels_out, 1)
        self.attn_last = SqueezeExcite(channels_out)
        self.skipinit_gain = nn.Parameter(torch.tensor(0.0))

    def forward(self, given: Tensor) -> Tensor:
        out = self.activation(given) * self.input_scale
        shortcut = given if self.downsample is None else self.downsample(out)
        for convolution in (self.conv1, self.conv2, self.conv2b):
            out = self.activation(convolution(out))
        out = _ATTENTION_GAIN * self.attn_last(self.conv3(out))
        return out * self.skipinit_gain * _ALPHA + shortcut


class Head(nn.Module):
    def __init__(self, features: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.dropout, self.fc = nn.Dropout(dropout), nn.Linear(features, classes)

    def forward(self, given: Tensor) -> Tensor:
        return self.fc(self.dropout(given.mean((2, 3))))


class NFNetF0(nn.Module):
    """Stages of 1, 2, 6 and 3 blocks. For one channel, pretrained filters of three are summed (`load_pretrained`)."""

    def __init__(self, *, channels: int = 3, classes: int = 14, dropout: float = 0.0) -> None:
        super().__init__()
        stem: OrderedDict[str, nn.Module] = OrderedDict()
        before = channels
        for index, (width, stride) in enumerate(((16, 2), (32, 1), (64, 1), (128, 2)), start=1):
            stem[f"conv{index}"] = StandardisedConvolution(before, width, 3, stride=stride)
            if index < 4:
                stem[f"act{index + 1}"] = ScaledGelu()
            before = width
        self.stem = nn.Sequential(stem)
        stages: list[nn.Module] = []
        variance = 1.0
        for stage, (depth, width) in enumerate(zip((1, 2, 6, 3), (256, 512, 1536, 1536), strict=True)):
            blocks: list[nn.Module] = []
            for index in range(depth):
                stride = 2 if index == 0 and stage > 0 else 1
                blocks.append(Block(before, width, stride=stride, expected_variance=variance))
                # The first block of a stage resets the variance.
                variance = (1.0 if index == 0 else variance) + _ALPHA**2
                before = width
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.Sequential(*stages)
        self.final_conv = StandardisedConvolution(before, 2 * before, 1)
        self.final_act = ScaledGelu()
        self.head = Head(2 * before, classes, dropout)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.final_act(self.final_conv(self.stages(self.stem(images)))))

    def load_pretrained(self, weights: dict[str, Tensor]) -> None:
        """Load published weights, except a classifier of another size. Colour filters are summed for grey images."""
        own = self.state_dict()
        taken = dict(weights)
        first = "stem.conv1.weight"
        if taken[first].shape[1] != own[first].shape[1] == 1:
            taken[first] = taken[first].sum(dim=1, keepdim=True)
        if taken["head.fc.weight"].shape != own["head.fc.weight"].shape:
            taken |= {name: own[name] for name in ("head.fc.weight", "head.fc.bias")}
        self.load_state_dict(taken)
