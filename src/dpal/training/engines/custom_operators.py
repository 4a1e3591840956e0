"""Our own torch operators, opaque to the compiler: gradients of convolutions and group norms by record."""

from typing import Any

import torch
from torch import Tensor

from dpal.training.engines import convolution_kernels, group_norm_kernels


@torch.library.custom_op("dpal::convolution_record_gradients", mutates_args=())
def convolution_record_gradients(
    images: Tensor, output_gradients: Tensor, geometry: list[int], copies: int, allow_tf32: bool
) -> tuple[Tensor, Tensor]:
    """(records, m, kernel · channels): each record's weight gradient, and its squared norm.

    Both tensors have their channels last; geometry is (height, width, stride, stride, padding, padding, dilation,
    dilation) of a convolution with one group. On CUDA only.
    """
    return convolution_kernels.record_gradients(images, output_gradients, geometry, copies, allow_tf32=allow_tf32)


@convolution_record_gradients.register_fake
def _(
    images: Tensor, output_gradients: Tensor, geometry: list[int], copies: int, allow_tf32: bool
) -> tuple[Tensor, Tensor]:
    records = images.shape[0] // copies
    n = geometry[0] * geometry[1] * images.shape[1]
    stored = images.new_empty((records, output_gradients.shape[1], n))
    return stored, images.new_empty((records,), dtype=torch.float32)


@torch.library.custom_op("dpal::convolution_record_squares", mutates_args=())
def convolution_record_squares(
    images: Tensor, output_gradients: Tensor, geometry: list[int], copies: int, allow_tf32: bool
) -> Tensor:
    """The squared norm of each record's weight gradient, which is not kept. On CUDA only."""
    return convolution_kernels.record_squares(images, output_gradients, geometry, copies, allow_tf32=allow_tf32)


@convolution_record_squares.register_fake
def _(images: Tensor, output_gradients: Tensor, geometry: list[int], copies: int, allow_tf32: bool) -> Tensor:
    return images.new_empty((images.shape[0] // copies,), dtype=torch.float32)


@torch.library.custom_op("dpal::convolution_weighted_sum", mutates_args=())
def convolution_weighted_sum(
    images: Tensor, output_gradients: Tensor, factors: Tensor, geometry: list[int], copies: int, allow_tf32: bool
) -> Tensor:
    """(m, kernel · channels), in float64: Σ over records of factor · the same gradient whose square was taken."""
    return convolution_kernels.weighted_sum(images, output_gradients, factors, geometry, copies, allow_tf32=allow_tf32)


@convolution_weighted_sum.register_fake
def _(
    images: Tensor, output_gradients: Tensor, factors: Tensor, geometry: list[int], copies: int, allow_tf32: bool
) -> Tensor:
    n = geometry[0] * geometry[1] * images.shape[1]
    return images.new_empty((output_gradients.shape[1], n), dtype=torch.float64)


@torch.library.custom_op("dpal::group_norm", mutates_args=())
def group_norm(images: Tensor, weight: Tensor, bias: Tensor, groups: int, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """A group norm with each record's own weight and bias; also every channel's mean and 1/deviation. On CUDA only."""
    return group_norm_kernels.group_norm(images, weight, bias, groups, eps)


@group_norm.register_fake
def _(images: Tensor, weight: Tensor, bias: Tensor, groups: int, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    output = torch.empty_like(images, memory_format=torch.channels_last)
    return output, torch.empty_like(weight, dtype=torch.float32), torch.empty_like(weight, dtype=torch.float32)


@torch.library.custom_op("dpal::group_norm_backward", mutates_args=())
def group_norm_backward(
    gradients: Tensor, images: Tensor, weight: Tensor, means: Tensor, scales: Tensor, groups: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the images, and of each record's weight and bias."""
    return group_norm_kernels.group_norm_backward(gradients, images, weight, means, scales, groups)


@group_norm_backward.register_fake
def _(
    gradients: Tensor, images: Tensor, weight: Tensor, means: Tensor, scales: Tensor, groups: int
) -> tuple[Tensor, Tensor, Tensor]:
    of_images = torch.empty_like(images, memory_format=torch.channels_last)
    return of_images, torch.empty_like(means), torch.empty_like(means)


class RecordGroupNorm(torch.autograd.Function):
    """The two operators as one differentiable function of images, weights and biases (records, channels)."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, bias: Tensor, groups: int, eps: float) -> Tensor:
        images = images.contiguous(memory_format=torch.channels_last)
        output, means, scales = group_norm(images, weight, bias, groups, eps)
        ctx.save_for_backward(images, weight, means, scales)
        ctx.groups = groups
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        images, weight, means, scales = ctx.saved_tensors
        gradient = gradients[0].contiguous(memory_format=torch.channels_last)
        return *group_norm_backward(gradient, images, weight, means, scales, ctx.groups), None, None
