"""Per-record norms and weighted sums of matrix gradients, from layer inputs and output gradients.

A record's gradient of an m × n matrix is Σ over its positions t of left_t ⊗ right_t. There are three methods:
- stored: multiply it out for each record, keep it, and add these up with the clip factors;
- gram: its squared norm is Σ over t, t' of (left_t · left_t')(right_t · right_t'), without the gradient itself; then
  one product over all records, with the left side scaled by the clip factors, gives the sum. Cheap where a record has
  few positions. All of it is in float64, since the positions of all records are summed together;
- recomputed: multiply it out twice, for the norm and for the sum, and keep nothing. For convolutions on a GPU, where a
  kernel adds each record's gradient to the sum in float64.
"""

from dataclasses import dataclass
from enum import Enum
from typing import cast

import torch
from torch import Tensor, nn

from dpal.training.engines.layer_capture import MatrixUse
from dpal.training.engines.tied_layers import TiedConvolution


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """left (records, groups, positions, m) and right (records, groups, positions, n) of one matrix.

    The left side of an embedding is one-hot and is kept as indices.
    """

    left: Tensor
    right: Tensor
    one_hot: bool = False
    skipped_index: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolved:
    """Inputs and output gradients of a convolution with one group, channels last, for the kernels."""

    images: Tensor
    output_gradients: Tensor
    geometry: tuple[int, ...]
    copies: int


class GradientMethod(Enum):
    """How a matrix's norms and sum are computed."""

    STORED = "stored"
    GRAM = "gram"
    RECOMPUTED = "recomputed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What decides between the methods, in any one unit of time: multiplications, and a byte of memory traffic."""

    multiplication: float
    multiplication64: float
    byte: float


_ROW = 512
# How much is unfolded into patches at a time on a CPU, and how much of the sides is converted to float64 at a time.
_PATCH_BYTES = 4 << 20
_SIDE_BYTES = 64 << 20
# Two operations per multiplication: about 100 GFLOP/s (half in float64) and 10 GB/s on a few CPU cores; 300 TFLOP/s (30
# in float64) and 4 TB/s on a GPU.
CPU_COSTS = Costs(multiplication=2 / 100e9, multiplication64=2 / 50e9, byte=1 / 10e9)
GPU_COSTS = Costs(multiplication=2 / 300e12, multiplication64=2 / 30e12, byte=1 / 4e12)


def untied(use: MatrixUse, given: Tensor, gradient: Tensor, copies: int) -> tuple[MatrixUse, Tensor, Tensor, int]:
    """A tied convolution as plain ones of its weight, which count as more copies. Other layers stay as they are."""
    module = use.module
    if not isinstance(module, TiedConvolution):
        return use, given, gradient, copies
    given, gradient = module.untied(given, gradient)
    return MatrixUse(parameter=use.parameter, module=module.plain()), given, gradient, copies * module.ties


def sides_of(use: MatrixUse, given: Tensor, gradient: Tensor, copies: int) -> Sides:
    """Both sides of one use. The positions of a record's copies follow one another."""
    module = use.module
    if isinstance(module, nn.Embedding):
        ids = given.reshape(given.shape[0] // copies, 1, -1)
        right = gradient.reshape(ids.shape[0], 1, ids.shape[2], -1)
        return Sides(left=ids, right=right, one_hot=True, skipped_index=module.padding_idx)
    if isinstance(module, nn.Conv2d):
        right = patches(given, module, padded=use.padded)
        count, groups, positions, n = right.shape
        left = gradient.movedim(1, -1).reshape(count, positions, groups, -1).transpose(1, 2)
        records = count // copies
        if copies > 1:
            left = left.reshape(records, copies, groups, positions, -1).transpose(1, 2)
            right = right.reshape(records, copies, groups, positions, n).transpose(1, 2)
        return Sides(
            left=left.reshape(records, groups, copies * positions, -1),
            right=right.reshape(records, groups, copies * positions, n),
        )
    records = given.shape[0] // copies
    return Sides(
        left=gradient.reshape(records, 1, -1, gradient.shape[-1]), right=given.reshape(records, 1, -1, given.shape[-1])
    )


def patches(images: Tensor, module: nn.Conv2d, *, padded: bool) -> Tensor:
    """(rows, groups, positions, kernel · channels of a group): what each output position of the convolution sees."""
    (height, width), (stride_y, stride_x), (dilation_y, dilation_x) = module.kernel_size, module.stride, module.dilation
    pad_y, pad_x = (0, 0) if padded or isinstance(module.padding, str) else module.padding
    last = images.movedim(1, -1)
    if pad_y or pad_x:
        last = nn.functional.pad(last, (0, 0, pad_x, pad_x, pad_y, pad_y))
    last = last.contiguous()
    count, rows, columns, channels = last.shape
    out_y = (rows - dilation_y * (height - 1) - 1) // stride_y + 1
    out_x = (columns - dilation_x * (width - 1) - 1) // stride_x + 1
    per_row, per_column, per_image = columns * channels, channels, rows * columns * channels
    groups = module.groups
    seen = last.as_strided(
        (count, groups, out_y, out_x, height, width, channels // groups),
        (
            per_image,
            channels // groups,
            stride_y * per_row,
            stride_x * per_column,
            dilation_y * per_row,
            dilation_x * per_column,
            1,
        ),
    )
    return seen.reshape(count, groups, out_y * out_x, -1)


def joined(uses: list[Sides]) -> Sides:
    """One matrix used several times: its positions are those of all uses."""
    if len(uses) == 1:
        return uses[0]
    one_hot = all(use.one_hot for use in uses)
    if not one_hot and any(use.one_hot for use in uses):
        width = next(use.left.shape[-1] for use in uses if not use.one_hot)
        uses = [_spelled_out(use, width) for use in uses]
    if one_hot and len({use.skipped_index for use in uses}) > 1:
        uses = [_without_skipped(use) for use in uses]
    left = torch.cat([use.left for use in uses], dim=2)
    right = torch.cat([use.right for use in uses], dim=2)
    return Sides(left=left, right=right, one_hot=one_hot, skipped_index=uses[0].skipped_index if one_hot else None)


def _without_skipped(use: Sides) -> Sides:
    """The same with zeros at the skipped index: uses of one embedding may skip different indices."""
    if use.skipped_index is None:
        return use
    return Sides(left=use.left, right=use.right * (use.left != use.skipped_index).unsqueeze(-1), one_hot=True)


def _spelled_out(use: Sides, width: int) -> Sides:
    """With the one-hot vectors in place of their indices."""
    if not use.one_hot:
        return use
    left = (use.left.unsqueeze(-1) == torch.arange(width, device=use.left.device)).to(use.right.dtype)
    if use.skipped_index is not None:
        left = left * (use.left != use.skipped_index).unsqueeze(-1)
    return Sides(left=left, right=use.right)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sizes of one matrix's sides, which decide the method."""

    groups: int
    positions: int
    m: int
    n: int


def shape_of(module: nn.Module, gradient: Tensor, copies: int, uses: int) -> Shape:
    """The sizes, from the layer and the gradient at its output alone."""
    if isinstance(module, nn.Conv2d):
        inside, height, width = module.weight.shape[1:]
        positions = gradient.shape[2] * gradient.shape[3] * copies * uses
        m, n = module.out_channels // module.groups, inside * height * width
        return Shape(groups=module.groups, positions=positions, m=m, n=n)
    m, n = cast("Tensor", module.weight).shape
    positions = gradient.numel() // gradient.shape[0] // gradient.shape[-1] * copies * uses
    return Shape(groups=1, positions=positions, m=int(m), n=int(n))


def cheapest_method(shape: Shape, costs: Costs, *, itemsize: int, has_kernel: bool) -> GradientMethod:
    """The method that takes the least time."""
    entries = shape.m * shape.n * shape.groups
    product = shape.positions * entries * costs.multiplication
    # Written once, read for the norm and for the sum.
    times = {GradientMethod.STORED: product + 3 * entries * itemsize * costs.byte + entries * costs.multiplication64}
    grams = shape.groups * shape.positions**2 * ((shape.m + shape.n) * costs.multiplication64 + 3 * 8 * costs.byte)
    times[GradientMethod.GRAM] = grams + shape.positions * entries * costs.multiplication64
    if has_kernel:
        times[GradientMethod.RECOMPUTED] = 2 * product + entries * costs.multiplication64
    return min(times, key=lambda method: times[method])


def squared_norms(stored: Tensor) -> Tensor:
    """Each record's squared norm: at least in float32 over short rows (rounding below 2^-16), then in float64."""
    flat = stored.flatten(1)
    if flat.shape[1] % _ROW:
        flat = nn.functional.pad(flat, (0, -flat.shape[1] % _ROW))
    exact = torch.promote_types(flat.dtype, torch.float32)
    rows = torch.linalg.vector_norm(flat.reshape(len(flat), -1, _ROW), dim=2, dtype=exact)
    return rows.double().square().sum(dim=1)


def stored_convolution(use: MatrixUse, given: Tensor, gradient: Tensor, copies: int) -> Tensor:
    """Like `stored_gradients`, but a few records at a time, so that their patches stay in the cache."""
    module = use.module
    if not isinstance(module, nn.Conv2d):
        raise TypeError(f"{type(module).__name__} has no patches")
    m, inside, height, width = module.weight.shape
    n = inside * height * width
    stored = gradient.new_empty((gradient.shape[0] // copies, module.groups, m // module.groups, n))
    positions = gradient.shape[2] * gradient.shape[3]
    fitting = _PATCH_BYTES // (positions * copies * n * module.groups * gradient.element_size())
    # The same number for each thread.
    threads = torch.get_num_threads()
    few = max(1, fitting // threads) * threads
    for start in range(0, len(stored), few):
        records = slice(start * copies, (start + few) * copies)
        sides = sides_of(use, given[records], gradient[records], copies)
        torch.matmul(sides.left.transpose(-1, -2), sides.right, out=stored[start : start + few])
    return stored


def stored_gradients(sides: Sides) -> Tensor:
    """(records, groups, m, n): every record's gradient, in the precision of the sides."""
    return torch.matmul(sides.left.transpose(-1, -2), sides.right)


def gram_norms(sides: Sides) -> tuple[Tensor, Tensor]:
    """Each record's squared norm, and a bound on the square of Σ_t |left_t|·|right_t|: rounding is relative to that."""
    right = _gram(sides.right)
    if sides.one_hot:
        same = sides.left.unsqueeze(-1) == sides.left.unsqueeze(-2)
        if sides.skipped_index is not None:
            same &= (sides.left != sides.skipped_index).unsqueeze(-1)
        left = same.to(right.dtype)
    else:
        left = _gram(sides.left)
    positions = left.shape[-1]
    diagonal = (left.diagonal(dim1=-2, dim2=-1) * right.diagonal(dim1=-2, dim2=-1)).sum(dim=(1, 2))
    return (left * right).sum(dim=(1, 2, 3)), positions * left.shape[1] * diagonal


def _gram(side: Tensor) -> Tensor:
    # In float64: where positions nearly cancel, a square in float32 would be rounding alone.
    exact = side.double()
    return torch.matmul(exact, exact.transpose(-1, -2))


def weighted_gram(sides: Sides, factors: Tensor, rows: int) -> Tensor:
    """(groups, m, n): Σ over records of factor · gradient, in float64, from scaled left sides; `rows` is m.

    A factor of 0 leaves a record out whatever its left side holds; its right side must be finite.
    """
    count, groups, positions, n = sides.right.shape
    m = 1 if sides.one_hot else sides.left.shape[-1]
    few = max(1, _SIDE_BYTES // (8 * groups * positions * (m + n)))
    total = factors.new_zeros(groups, rows // groups, n)
    for start in range(0, count, few):
        records = slice(start, start + few)
        weights = factors[records].reshape(-1, 1, 1, 1)
        if sides.one_hot:
            _add_rows(total[0], sides, records, weights)
        else:
            left = torch.where(weights > 0, sides.left[records] * weights, 0.0)
            total = total + torch.bmm(_by_group(left).transpose(-1, -2), _by_group(sides.right[records].double()))
    return total


def _add_rows(total: Tensor, sides: Sides, records: slice, weights: Tensor) -> None:
    """For an embedding, whose left side is one-hot: add each position's right side to the row of its index."""
    ids = sides.left[records]
    scaled = torch.where(weights > 0, sides.right[records] * weights, 0.0)
    if sides.skipped_index is not None:
        scaled = scaled * (ids != sides.skipped_index).unsqueeze(-1)
    total.index_add_(0, ids.reshape(-1), scaled.reshape(-1, scaled.shape[-1]))


def _by_group(side: Tensor) -> Tensor:
    return side.transpose(0, 1).reshape(side.shape[1], -1, side.shape[-1])


def as_parameter(total: Tensor, parameter: Tensor) -> Tensor:
    """From (groups, m, n) to the parameter's own shape: a convolution's patches have their channels last."""
    if parameter.ndim > 2:
        out, *_, height, width = parameter.shape
        return total.reshape(out, height, width, -1).permute(0, 3, 1, 2).reshape(parameter.shape)
    return total.reshape(parameter.shape)
