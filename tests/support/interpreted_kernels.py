"""The Triton kernels on a CPU, in Triton's interpreter, next to float64 references.

As a program (with TRITON_INTERPRET=1 and the kind of kernels) it prints one line per case, with its largest relative
error; `errors_of` runs it in a process of its own.
"""

import os
import subprocess
import sys

import torch
from torch import Tensor
from torch.nn import functional

from dpal.training.engines import convolution_kernels, group_norm_kernels


def errors_of(kind: str) -> dict[str, float]:
    """The largest relative error of each case: "convolution" or "norm"."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "2"}
    ran = subprocess.run(
        [sys.executable, __file__, kind], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return {words.rpartition(" ")[0]: float(words.rpartition(" ")[2]) for words in ran.stdout.splitlines()}


def tell(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")


def error(found: Tensor, wanted: Tensor) -> float:
    return float((found.double() - wanted).norm() / wanted.norm())


def group_norm(count: int, channels: int, groups: int, height: int, width: int, dtype: torch.dtype) -> float:
    # Far from zero, where careless squares would cancel.
    images = (torch.randn(count, channels, height, width) + 30).to(dtype).contiguous(memory_format=torch.channels_last)
    weight, bias = torch.randn(count, channels), torch.randn(count, channels)
    gradient = torch.randn(images.shape).to(dtype)
    exact = [each.double().requires_grad_() for each in (images, weight, bias)]
    plain = functional.group_norm(exact[0], groups, eps=1e-5)
    wanted = plain * exact[1][:, :, None, None] + exact[2][:, :, None, None]
    wanted_gradients = torch.autograd.grad(wanted, exact, gradient.double())
    output, means, scales = group_norm_kernels.group_norm(images, weight, bias, groups, 1e-5)
    found = group_norm_kernels.group_norm_backward(gradient, images, weight, means, scales, groups)
    pairs = [(output, wanted.detach()), *zip(found, wanted_gradients, strict=True)]
    return max(error(one, other) for one, other in pairs)


def convolution(records: int, copies: int, channels: int, m: int, side: int) -> float:
    images = torch.randn(records * copies, channels, side, side)
    gradients = torch.randn(records * copies, m, side, side)
    geometry = [3, 3, 1, 1, 1, 1, 1, 1]
    stored, squares = convolution_kernels.record_gradients(images, gradients, geometry, copies, allow_tf32=False)
    wanted = []
    for record in range(records):
        weight = torch.zeros(m, channels, 3, 3, dtype=torch.float64, requires_grad=True)
        own = slice(record * copies, (record + 1) * copies)
        output = functional.conv2d(images[own].double(), weight, padding=1)
        wanted.append(torch.autograd.grad(output, weight, gradients[own].double())[0].permute(0, 2, 3, 1).flatten(1))
    exact = torch.stack(wanted)
    factors = torch.rand(records, dtype=torch.float64)
    factors[-1] = 0.0
    # Whoever has the factor 0 is left out, whatever it holds.
    broken = torch.cat([images[:-copies], images[-copies:] * torch.inf])
    summed = convolution_kernels.weighted_sum(broken, gradients, factors, geometry, copies, allow_tf32=False)
    again = convolution_kernels.record_squares(images, gradients, geometry, copies, allow_tf32=False)
    pairs = [(stored, exact), (squares, exact.square().sum(dim=(1, 2))), (again, exact.square().sum(dim=(1, 2)))]
    pairs += [(summed, (exact * factors[:, None, None]).sum(dim=0))] if records > 1 else []
    return max(error(one, other) for one, other in pairs)


if __name__ == "__main__":
    torch.manual_seed(0)
    if sys.argv[1] == "norm":
        for shape in ((2, 64, 32, 9, 9), (2, 144, 9, 8, 8), (2, 256, 32, 4, 4), (1, 32, 16, 40, 32), (2, 6, 6, 5, 7)):
            tell("norm", *shape, group_norm(*shape, torch.float32))
        tell("bf16 norm", group_norm(2, 64, 32, 9, 9, torch.bfloat16))
    else:
        for shape in ((2, 1, 3, 8, 6), (1, 2, 16, 20, 5), (2, 1, 128, 72, 4)):
            tell("convolution", *shape, convolution(*shape))
