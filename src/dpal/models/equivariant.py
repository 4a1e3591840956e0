"""ResNet-9 whose features turn with the image: group convolutions over the symmetries of the square.

Rotations by 90° and flips map a grid onto itself, so plain convolutions with turned filters are exact. A feature field
holds one map for each symmetry g; turning the image by h turns each map by h and moves it from g to h·g.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from dpal.errors import InvalidArgument
from dpal.training.engines.tied_layers import TiedConvolution, TiedGroupNorm

# A symmetry is (quarter turns, flipped): first the flip of the columns, then the turns.
Symmetry = tuple[int, int]
SQUARE: tuple[Symmetry, ...] = tuple((turns, flip) for flip in (0, 1) for turns in range(4))
# Half of the rotations: the half turn, and the flips.
HALF_TURNS: tuple[Symmetry, ...] = tuple((turns, flip) for flip in (0, 1) for turns in (0, 2))


def product(first: Symmetry, second: Symmetry) -> Symmetry:
    """The symmetry that does `second`, then `first`. A flip reverses the turns that it passes."""
    turns = second[0] if first[1] == 0 else -second[0]
    return (first[0] + turns) % 4, first[1] ^ second[1]


def inverse(symmetry: Symmetry) -> Symmetry:
    turns, flip = symmetry
    return (turns, 1) if flip else (-turns % 4, 0)


def turned(images: Tensor, symmetry: Symmetry) -> Tensor:
    """Images, or filters, after a symmetry of their last two dimensions."""
    turns, flip = symmetry
    return torch.rot90(images.flip(-1) if flip else images, turns, dims=(-2, -1))


class _SymmetricConvolution(TiedConvolution):
    """One plain convolution for each symmetry, with the filter turned."""

    def __init__(self, symmetries: tuple[Symmetry, ...]) -> None:
        super().__init__()
        self.symmetries = symmetries

    @property
    def ties(self) -> int:
        return len(self.symmetries)

    def filters(self) -> Tensor:
        return torch.stack([self._filter(index) for index in range(self.ties)], dim=1).flatten(0, 1)

    def untied(self, images: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
        """A turned filter on the image is the filter on the image turned back, and the result turned."""
        images, gradients = _square(images), _square(gradients)
        by_symmetry = gradients.unflatten(1, (-1, self.ties))
        turned_images = [self._seen(images, index) for index in range(self.ties)]
        turned_gradients = [by_symmetry[:, :, index] for index in range(self.ties)]
        return self._turned_back(turned_images), self._turned_back(turned_gradients)

    def _turned_back(self, each: list[Tensor]) -> Tensor:
        """One after another for each row; channels last, so that a GPU reads and writes neighbours together."""
        last = [turned(images, inverse(g)).permute(0, 2, 3, 1) for images, g in zip(each, self.symmetries, strict=True)]
        return torch.stack(last, dim=1).flatten(0, 1).permute(0, 3, 1, 2)

    def _filter(self, index: int) -> Tensor:
        """The filter of a symmetry: (fields, channels, 3, 3)."""
        return turned(self.weight, self.symmetries[index])

    def _seen(self, images: Tensor, index: int) -> Tensor:
        """The channels in the order in which the weight meets them for a symmetry."""
        return images


def _square(images: Tensor) -> Tensor:
    """Padded with zeros on the right or below, so that turned images have one shape. Convolutions pad there anyway."""
    height, width = images.shape[-2:]
    side = max(height, width)
    return images if height == width else functional.pad(images, (0, side - width, 0, side - height))


class LiftingConvolution(_SymmetricConvolution):
    """From images to feature fields."""

    def __init__(self, channels: int, fields: int, symmetries: tuple[Symmetry, ...]) -> None:
        super().__init__(symmetries)
        self.weight = nn.Parameter(torch.empty(fields, channels, 3, 3))
        nn.init.kaiming_normal_(self.weight)


class GroupConvolution(_SymmetricConvolution):
    """From feature fields to feature fields: out(g) = Σ_k in(k) ∗ turned_g(weight[g⁻¹k])."""

    def __init__(self, fields_in: int, fields_out: int, symmetries: tuple[Symmetry, ...]) -> None:
        super().__init__(symmetries)
        self.weight = nn.Parameter(torch.empty(fields_out, fields_in, len(symmetries), 3, 3))
        nn.init.normal_(self.weight, std=(2 / (9 * fields_in * len(symmetries))) ** 0.5)
        place = {g: index for index, g in enumerate(symmetries)}
        self.order = [[place[product(inverse(g), k)] for k in symmetries] for g in symmetries]
        self.reverse_order = [[place[product(g, j)] for j in symmetries] for g in symmetries]

    def _filter(self, index: int) -> Tensor:
        return turned(self.weight[:, :, self.order[index]], self.symmetries[index]).flatten(1, 2)

    def _seen(self, images: Tensor, index: int) -> Tensor:
        return images.unflatten(1, (-1, self.ties))[:, :, self.reverse_order[index]].flatten(1, 2)


class FieldBlock(nn.Module):
    """Convolution, norm, Mish and, if asked for, a pool that halves the sides."""

    def __init__(self, convolution: nn.Module, fields: int, order: int, *, pool: bool = False) -> None:
        super().__init__()
        self.convolution, self.norm = convolution, TiedGroupNorm(fields, order, _norm_groups(fields))
        self.activation = nn.Mish()
        self.pool = nn.MaxPool2d(2) if pool else nn.Identity()

    def forward(self, features: Tensor) -> Tensor:
        return self.pool(self.activation(self.norm(self.convolution(features))))


class FieldResidual(nn.Module):
    def __init__(self, fields: int, symmetries: tuple[Symmetry, ...]) -> None:
        super().__init__()
        order = len(symmetries)
        self.blocks = nn.Sequential(
            *(FieldBlock(GroupConvolution(fields, fields, symmetries), fields, order) for _ in range(2))
        )
        self.norm = TiedGroupNorm(fields, order, _norm_groups(fields))

    def forward(self, features: Tensor) -> Tensor:
        return self.norm(features + self.blocks(features))


class Restriction(nn.Module):
    """Forget some symmetries: a field becomes several, one for each coset of those that remain."""

    def __init__(self, before: tuple[Symmetry, ...], after: tuple[Symmetry, ...]) -> None:
        super().__init__()
        place = {g: index for index, g in enumerate(before)}
        left, self.order = set(before), []
        for g in before:
            if g in left:
                coset = [product(h, g) for h in after]
                left -= set(coset)
                self.order.extend(place[member] for member in coset)

    def forward(self, features: Tensor) -> Tensor:
        fields = features.unflatten(1, (-1, len(self.order)))
        return fields[:, :, self.order].flatten(1, 2)


class EquivariantResNet9(nn.Module):
    """The shape of ResNet-9 with feature fields. By default logits depend on the quarter of the image a feature is in.

    With `parts=1` they are invariant under the kept symmetries: there is one mean over all positions.

    It has the channels of ResNet-9 and a fifth of its parameters: fewer parameters take less noise, which is why such
    networks do well in private training (arXiv:2301.13104).
    Exact for sides that are multiples of 8. By default the last stage keeps the half turn and the flips only.
    """

    def __init__(
        self,
        *,
        channels: int = 3,
        classes: int = 10,
        fields: tuple[int, int, int] = (8, 16, 32),
        last_symmetries: tuple[Symmetry, ...] = HALF_TURNS,
        parts: int = 2,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        closed = all(product(g, h) in last_symmetries for g in last_symmetries for h in last_symmetries)
        if not last_symmetries or not closed or not set(last_symmetries) <= set(SQUARE):
            raise InvalidArgument("last_symmetries", last_symmetries, "a group: closed under composition")
        if parts < 1:
            raise InvalidArgument("parts", parts, "at least 1: parts of each side to average over")
        self.last_symmetries, self.parts = last_symmetries, parts
        first, second, third = fields
        order = len(SQUARE)
        last = third * order // len(last_symmetries)
        self.features = nn.Sequential(
            FieldBlock(LiftingConvolution(channels, first, SQUARE), first, order),
            FieldBlock(GroupConvolution(first, second, SQUARE), second, order, pool=True),
            FieldResidual(second, SQUARE),
            FieldBlock(GroupConvolution(second, third, SQUARE), third, order, pool=True),
            FieldBlock(GroupConvolution(third, third, SQUARE), third, order, pool=True),
            Restriction(SQUARE, last_symmetries),
            FieldResidual(last, last_symmetries),
        )
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(last * parts**2, classes)

    def forward(self, images: Tensor) -> Tensor:
        if min(images.shape[-2:]) < 8:
            raise InvalidArgument("the size of the images", tuple(images.shape[-2:]), "at least 8 × 8")
        fields = self.features(images).unflatten(1, (-1, len(self.last_symmetries)))
        # The maximum over symmetries does not depend on how the image was turned.
        means = functional.adaptive_avg_pool2d(fields.amax(dim=2), self.parts)
        return self.classifier(self.dropout(means.flatten(1)))


def _norm_groups(fields: int) -> int:
    """Two fields per group, as in the plain network with 32 groups; one if the number is odd."""
    return fields // 2 if fields % 2 == 0 else fields
