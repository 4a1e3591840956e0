"""Operators of our own, opaque to the compiler's tracer: products that end in float32, and per-record convolutions."""

import torch
from torch import Tensor

from dpal.training import kernels


@torch.library.custom_op("dpal::float32_bmm", mutates_args=())
def float32_bmm(left: Tensor, right: Tensor) -> Tensor:
    """Products of bfloat16 numbers, added up and returned in float32."""
    if left.is_cuda:
        return torch.bmm(left, right, out_dtype=torch.float32)
    return torch.bmm(left.float(), right.float())


@float32_bmm.register_fake
def _(left: Tensor, right: Tensor) -> Tensor:
    return left.new_empty((left.shape[0], left.shape[1], right.shape[2]), dtype=torch.float32)


@torch.library.custom_op("dpal::convolution_record_gradients", mutates_args=())
def convolution_record_gradients(
    images: Tensor, output_gradients: Tensor, geometry: list[int], copies: int, allow_tf32: bool
) -> tuple[Tensor, Tensor]:
    """(records, m, kernel · channels): each record's weight gradient, and the squared norm of just that.

    Both tensors have their channels last; geometry is (height, width, stride, stride, padding, padding, dilation,
    dilation) of a convolution with one group. On CUDA only.
    """
    return kernels.record_gradients(images, output_gradients, geometry, copies, allow_tf32=allow_tf32)


@convolution_record_gradients.register_fake
def _(
    images: Tensor, output_gradients: Tensor, geometry: list[int], copies: int, allow_tf32: bool
) -> tuple[Tensor, Tensor]:
    records = images.shape[0] // copies
    n = geometry[0] * geometry[1] * images.shape[1]
    stored = images.new_empty((records, output_gradients.shape[1], n))
    return stored, images.new_empty((records,), dtype=torch.float32)
