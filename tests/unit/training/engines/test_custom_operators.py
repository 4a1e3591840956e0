"""The shapes that the compiler is told are those of the real results. What the kernels compute is tested with them."""

import pytest
import torch
from torch.nn import functional

from dpal.training.engines.custom_operators import (
    RecordGroupNorm,
    convolution_record_gradients,
    convolution_record_squares,
    convolution_weighted_sum,
    group_norm,
    group_norm_backward,
)

# The meta device runs what the compiler runs: shapes and types, and no numbers.
META = torch.device("meta")


@pytest.mark.parametrize("copies", [1, 2])
def test_convolutions_have_a_row_for_each_record_not_for_each_copy(copies: int) -> None:
    images = torch.empty(6, 3, 8, 8, device=META)
    output = functional.conv2d(images, torch.empty(5, 3, 3, 2, device=META), padding=1)
    geometry, records = [3, 2, 1, 1, 1, 1, 1, 1], 6 // copies
    stored, squares = convolution_record_gradients(images, output, geometry, copies, False)
    assert (stored.shape, squares.shape) == ((records, 5, 3 * 2 * 3), (records,))
    assert squares.dtype == torch.float32
    assert convolution_record_squares(images, output, geometry, copies, False).shape == (records,)
    # Sums are in float64: how many others there are must not be seen in the rounding.
    factors = torch.empty(records, dtype=torch.float64, device=META)
    total = convolution_weighted_sum(images, output, factors, geometry, copies, False)
    assert (total.shape, total.dtype) == ((5, 3 * 2 * 3), torch.float64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_group_norms_have_a_mean_and_a_scale_for_each_record(dtype: torch.dtype) -> None:
    images = torch.empty(4, 8, 5, 7, device=META, dtype=dtype)
    weight = torch.empty(4, 8, device=META, dtype=dtype)
    output, means, scales = group_norm(images, weight, weight, 2, 1e-5)
    assert (output.shape, output.dtype) == (images.shape, dtype)
    assert output.is_contiguous(memory_format=torch.channels_last)
    assert (means.shape, means.dtype, scales.shape, scales.dtype) == ((4, 8), torch.float32) * 2
    gradients = group_norm_backward(output, images, weight, means, scales, 2)
    assert [each.shape for each in gradients] == [images.shape, weight.shape, weight.shape]


def test_gradients_reach_images_weights_and_biases() -> None:
    images = torch.empty(4, 8, 5, 7, device=META, requires_grad=True)
    weight, bias = (torch.empty(4, 8, device=META, requires_grad=True) for _ in range(2))
    RecordGroupNorm.apply(images, weight, bias, 2, 1e-5).sum().backward()
    assert [each.grad.shape for each in (images, weight, bias)] == [images.shape, weight.shape, bias.shape]
