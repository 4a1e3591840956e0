"""Triton kernels for CUDA. Where there is no Triton, `AVAILABLE` is false and other paths are taken."""

from typing import NamedTuple

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl

    AVAILABLE = True
except ImportError:
    AVAILABLE = False

if AVAILABLE:

    @triton.jit
    def _record_gradients(
        images, gradients, stored, squares,
        height, width,
        image_stride, image_row, image_column,
        gradient_stride, gradient_row, gradient_column,
        M: tl.constexpr, C: tl.constexpr, HO: tl.constexpr, WO: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr,
        SY: tl.constexpr, SX: tl.constexpr, PY: tl.constexpr, PX: tl.constexpr, DY: tl.constexpr, DX: tl.constexpr,
        COPIES: tl.constexpr, PRECISION: tl.constexpr,
        BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    ):  # fmt: skip
        # One program makes a BM × BN tile of one record's gradient: M output channels by (kernel row, kernel column,
        # channel). It multiplies output gradients and shifted inputs over all positions of all copies.
        N: tl.constexpr = KH * KW * C
        T: tl.constexpr = HO * WO
        tiles_n: tl.constexpr = (N + BN - 1) // BN
        tile = tl.program_id(0)
        record = tl.program_id(1).to(tl.int64)
        m = (tile // tiles_n) * BM + tl.arange(0, BM)
        if C % BN == 0:
            # The whole tile is one kernel position: a scalar shift, and channels that lie side by side.
            start = (tile % tiles_n) * BN
            shift = start // C
            n = start + tl.arange(0, BN)
            channel = start % C + tl.arange(0, BN)
            shift_y = (shift // KW) * DY - PY
            shift_x = (shift % KW) * DX - PX
        else:
            n = (tile % tiles_n) * BN + tl.arange(0, BN)
            channel = n % C
            shift_y = ((n // C // KW) * DY - PY)[None, :]
            shift_x = ((n // C % KW) * DX - PX)[None, :]
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for copy in range(COPIES):
            image = images + (record * COPIES + copy) * image_stride
            gradient = gradients + (record * COPIES + copy) * gradient_stride
            for first in range(0, T, BK):
                t = first + tl.arange(0, BK)
                y, x = t // WO, t % WO
                left = tl.load(
                    gradient + (y * gradient_row + x * gradient_column)[:, None] + m[None, :],
                    mask=(t < T)[:, None] & (m < M)[None, :],
                    other=0.0,
                )
                source_y, source_x = (y * SY)[:, None] + shift_y, (x * SX)[:, None] + shift_x
                inside = (source_y >= 0) & (source_y < height) & (source_x >= 0) & (source_x < width)
                right = tl.load(
                    image + source_y * image_row + source_x * image_column + channel[None, :],
                    mask=inside & (t < T)[:, None] & (n < N)[None, :],
                    other=0.0,
                )
                total = tl.dot(tl.trans(left), right, total, input_precision=PRECISION)
        inside = (m < M)[:, None] & (n < N)[None, :]
        value = total.to(stored.dtype.element_ty)
        tl.store(stored + record * M * N + m[:, None] * N + n[None, :], value, mask=inside)
        # The norm of what is stored, rounding included.
        kept = tl.where(inside, value.to(tl.float32), 0.0)
        tl.store(squares + record * tl.num_programs(0) + tile, tl.sum(tl.sum(kept * kept, axis=1), axis=0))


class Tiling(NamedTuple):
    """Output channels, columns and positions of a program's tile; warps; depth of its pipeline."""

    m: int
    n: int
    k: int
    warps: int
    stages: int


def tiling_for(m: int, channels: int, positions: int, itemsize: int) -> Tiling:
    """The tiles that were fastest on an H200 for the shapes of ResNet-9 (benchmarks/training.py)."""
    if channels < 16:
        return Tiling(64, 32, 64, 4, 3)
    k = min(64 if itemsize == 2 else 32, max(16, triton.next_power_of_2(positions)))
    return Tiling(128 if m > 64 else 64, 128 if channels % 128 == 0 else 64, k, 8 if m > 64 else 4, 3)


def record_gradients(
    images: Tensor,
    output_gradients: Tensor,
    geometry: list[int],
    copies: int,
    *,
    allow_tf32: bool,
    tiling: Tiling | None = None,
) -> tuple[Tensor, Tensor]:
    """Each record's weight gradient of a convolution with one group, and its squared norm. Channels last."""
    height, width, stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x = geometry
    count, channels, rows, columns = images.shape
    _, m, out_y, out_x = output_gradients.shape
    images = images.contiguous(memory_format=torch.channels_last)
    output_gradients = output_gradients.contiguous(memory_format=torch.channels_last)
    records, n = count // copies, height * width * channels
    stored = images.new_empty((records, m, n))
    tiles = tiling or tiling_for(m, channels, out_y * out_x, images.element_size())
    grid = (triton.cdiv(m, tiles.m) * triton.cdiv(n, tiles.n), records)
    squares = images.new_empty((records, grid[0]), dtype=torch.float32)
    is_float32 = images.dtype == torch.float32
    # Strides are spelled out: an image with one channel or one column has arbitrary ones.
    _record_gradients[grid](
        images, output_gradients, stored, squares,
        rows, columns,
        rows * columns * channels, columns * channels, channels,
        out_y * out_x * m, out_x * m, m,
        M=m, C=channels, HO=out_y, WO=out_x, KH=height, KW=width,
        SY=stride_y, SX=stride_x, PY=pad_y, PX=pad_x, DY=dilation_y, DX=dilation_x,
        COPIES=copies,
        PRECISION="tf32" if is_float32 and allow_tf32 else "ieee",
        BM=tiles.m, BN=tiles.n, BK=tiles.k, num_warps=tiles.warps, num_stages=tiles.stages,
    )  # fmt: skip
    return stored, squares.sum(dim=1)
