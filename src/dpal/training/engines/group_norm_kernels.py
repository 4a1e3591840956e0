# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportPossiblyUnboundVariable=false, reportArgumentType=false
"""Triton kernels for CUDA: group norms of images with channels last, and their parameters' gradients by record.

A program takes all positions of one image and a few channels, in whole groups, and reads the image once. What a
compiler makes of such a group norm is several passes that each read a few bytes per cache line.
"""

import torch
from torch import Tensor

from dpal.training.engines.convolution_kernels import AVAILABLE

if AVAILABLE:
    import triton
    import triton.language as tl

# Values that a program keeps in registers. Larger images are read in pieces, once per sum.
_KEPT = 16_384
# Thirty-two bytes of bfloat16, which a cache reads at once.
_NEIGHBOURS = 16
_LARGEST_GROUP = 128

if AVAILABLE:

    @triton.jit
    def _over_groups(by_channel, PER_GROUP: tl.constexpr, BC: tl.constexpr):
        # Each channel gets its group's sum.
        groups: tl.constexpr = BC // PER_GROUP
        total = tl.sum(tl.reshape(by_channel, (groups, PER_GROUP)), axis=1)
        return tl.reshape(tl.broadcast_to(total[:, None], (groups, PER_GROUP)), (BC,))

    @triton.jit
    def _forward(
        images, weight, bias, output, means, scales, positions, eps,
        C: tl.constexpr, PER_GROUP: tl.constexpr, BC: tl.constexpr, BT: tl.constexpr, WHOLE: tl.constexpr,
    ):  # fmt: skip
        blocks: tl.constexpr = (C + BC - 1) // BC
        record = (tl.program_id(0) // blocks).to(tl.int64)
        channel = tl.program_id(0) % blocks * BC + tl.arange(0, BC)
        known = channel < C
        place = tl.arange(0, BT)
        images += record * positions * C
        output += record * positions * C
        row = record * C + channel
        w = tl.load(weight + row, mask=known, other=0.0).to(tl.float32)
        b = tl.load(bias + row, mask=known, other=0.0).to(tl.float32)
        count = positions * PER_GROUP
        if WHOLE:
            at = place[:, None] * C + channel[None, :]
            inside = (place < positions)[:, None] & known[None, :]
            value = tl.load(images + at, mask=inside, other=0.0).to(tl.float32)
            mean = _over_groups(tl.sum(value, axis=0), PER_GROUP, BC) / count
            centred = tl.where(inside, value - mean[None, :], 0.0)
            variance = _over_groups(tl.sum(centred * centred, axis=0), PER_GROUP, BC) / count
            scale = 1.0 / tl.sqrt(variance + eps)
            made = centred * (scale * w)[None, :] + b[None, :]
            tl.store(output + at, made.to(output.dtype.element_ty), mask=inside)
        else:
            # Sums around the mean of the first piece, which is near enough for squares not to cancel.
            inside = (place < positions)[:, None] & known[None, :]
            value = tl.load(images + place[:, None] * C + channel[None, :], mask=inside, other=0.0).to(tl.float32)
            near = _over_groups(tl.sum(value, axis=0), PER_GROUP, BC) / (min(BT, positions) * PER_GROUP)
            total = tl.zeros((BC,), dtype=tl.float32)
            squares = tl.zeros((BC,), dtype=tl.float32)
            for first in range(0, positions, BT):
                at = (first + place)[:, None] * C + channel[None, :]
                inside = (first + place < positions)[:, None] & known[None, :]
                value = tl.load(images + at, mask=inside, other=0.0).to(tl.float32)
                moved = tl.where(inside, value - near[None, :], 0.0)
                total += tl.sum(moved, axis=0)
                squares += tl.sum(moved * moved, axis=0)
            further = _over_groups(total, PER_GROUP, BC) / count
            mean = near + further
            variance = _over_groups(squares, PER_GROUP, BC) / count - further * further
            scale = 1.0 / tl.sqrt(tl.maximum(variance, 0.0) + eps)
            for first in range(0, positions, BT):
                at = (first + place)[:, None] * C + channel[None, :]
                inside = (first + place < positions)[:, None] & known[None, :]
                value = tl.load(images + at, mask=inside, other=0.0).to(tl.float32)
                made = (value - mean[None, :]) * (scale * w)[None, :] + b[None, :]
                tl.store(output + at, made.to(output.dtype.element_ty), mask=inside)
        tl.store(means + row, mean, mask=known)
        tl.store(scales + row, scale, mask=known)

    @triton.jit
    def _backward(
        gradients, images, weight, means, scales, image_gradients, weight_gradients, bias_gradients, positions,
        C: tl.constexpr, PER_GROUP: tl.constexpr, BC: tl.constexpr, BT: tl.constexpr, WHOLE: tl.constexpr,
    ):  # fmt: skip
        blocks: tl.constexpr = (C + BC - 1) // BC
        record = (tl.program_id(0) // blocks).to(tl.int64)
        channel = tl.program_id(0) % blocks * BC + tl.arange(0, BC)
        known = channel < C
        place = tl.arange(0, BT)
        images += record * positions * C
        gradients += record * positions * C
        image_gradients += record * positions * C
        row = record * C + channel
        w = tl.load(weight + row, mask=known, other=0.0).to(tl.float32)
        mean = tl.load(means + row, mask=known, other=0.0)
        scale = tl.load(scales + row, mask=known, other=0.0)
        count = positions * PER_GROUP
        if WHOLE:
            at = place[:, None] * C + channel[None, :]
            inside = (place < positions)[:, None] & known[None, :]
            gradient = tl.load(gradients + at, mask=inside, other=0.0).to(tl.float32)
            value = tl.load(images + at, mask=inside, other=0.0).to(tl.float32)
            normal = (value - mean[None, :]) * scale[None, :]
            of_bias = tl.sum(gradient, axis=0)
            of_weight = tl.sum(gradient * normal, axis=0)
            common = _over_groups(w * of_bias, PER_GROUP, BC) / count
            along = _over_groups(w * of_weight, PER_GROUP, BC) / count
            made = scale[None, :] * (gradient * w[None, :] - common[None, :] - normal * along[None, :])
            tl.store(image_gradients + at, made.to(image_gradients.dtype.element_ty), mask=inside)
        else:
            of_bias = tl.zeros((BC,), dtype=tl.float32)
            of_weight = tl.zeros((BC,), dtype=tl.float32)
            for first in range(0, positions, BT):
                at = (first + place)[:, None] * C + channel[None, :]
                inside = (first + place < positions)[:, None] & known[None, :]
                gradient = tl.load(gradients + at, mask=inside, other=0.0).to(tl.float32)
                value = tl.load(images + at, mask=inside, other=0.0).to(tl.float32)
                of_bias += tl.sum(gradient, axis=0)
                of_weight += tl.sum(gradient * (value - mean[None, :]) * scale[None, :], axis=0)
            common = _over_groups(w * of_bias, PER_GROUP, BC) / count
            along = _over_groups(w * of_weight, PER_GROUP, BC) / count
            for first in range(0, positions, BT):
                at = (first + place)[:, None] * C + channel[None, :]
                inside = (first + place < positions)[:, None] & known[None, :]
                gradient = tl.load(gradients + at, mask=inside, other=0.0).to(tl.float32)
                value = tl.load(images + at, mask=inside, other=0.0).to(tl.float32)
                normal = (value - mean[None, :]) * scale[None, :]
                made = scale[None, :] * (gradient * w[None, :] - common[None, :] - normal * along[None, :])
                tl.store(image_gradients + at, made.to(image_gradients.dtype.element_ty), mask=inside)
        tl.store(weight_gradients + row, of_weight, mask=known)
        tl.store(bias_gradients + row, of_bias, mask=known)


def covers(images: Tensor, groups: int) -> bool:
    """Whether the kernels support such images and groups. Torch computes the others."""
    per_group = images.shape[1] // groups
    return (
        AVAILABLE
        and images.is_cuda
        and images.ndim == 4
        and images.dtype in (torch.float32, torch.bfloat16)
        and per_group <= _LARGEST_GROUP
        and per_group.bit_count() == 1
    )


def group_norm(images: Tensor, weight: Tensor, bias: Tensor, groups: int, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """The norm with a weight and bias (records, channels); also each channel's mean and 1/deviation, of its group."""
    if not weight.shape == bias.shape == images.shape[:2]:
        raise ValueError(f"weight {tuple(weight.shape)} and bias {tuple(bias.shape)} for images {tuple(images.shape)}")
    images = images.contiguous(memory_format=torch.channels_last)
    output = torch.empty_like(images)
    means, scales = (torch.empty_like(weight, dtype=torch.float32) for _ in range(2))
    grid, sizes = _tiles(images, groups)
    positions = images.shape[2] * images.shape[3]
    _forward[grid](images, weight.contiguous(), bias.contiguous(), output, means, scales, positions, eps, **sizes)
    return output, means, scales


def group_norm_backward(
    gradients: Tensor, images: Tensor, weight: Tensor, means: Tensor, scales: Tensor, groups: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the images, and of weight and bias by record."""
    images = images.contiguous(memory_format=torch.channels_last)
    gradients = gradients.contiguous(memory_format=torch.channels_last)
    of_images = torch.empty_like(images)
    of_weight, of_bias = (torch.empty_like(means) for _ in range(2))
    grid, sizes = _tiles(images, groups)
    positions = images.shape[2] * images.shape[3]
    _backward[grid](
        gradients, images, weight.contiguous(), means, scales, of_images, of_weight, of_bias, positions, **sizes
    )
    return of_images, of_weight, of_bias


def _tiles(images: Tensor, groups: int) -> tuple[tuple[int], dict[str, int]]:
    count, channels, height, width = images.shape
    per_group = channels // groups
    at_least = max(_NEIGHBOURS, per_group)
    places = triton.next_power_of_2(height * width)
    whole = places * at_least <= _KEPT
    # Small images: more channels at once, so that a program has enough work.
    block = min(max(at_least, 4_096 // places), max(at_least, triton.next_power_of_2(channels)))
    bt = places if whole else _KEPT // 2 // at_least
    sizes = {"C": channels, "PER_GROUP": per_group, "BC": block, "BT": bt, "WHOLE": whole}
    # In one dimension: the others are limited to 65,535.
    return (triton.cdiv(channels, block) * count,), {**sizes, "num_warps": 8 if block * bt > 4_096 else 4}
