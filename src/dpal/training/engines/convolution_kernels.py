# pyright: basic, reportMissingImports=false, reportConstantRedefinition=false, reportIndexIssue=false, reportPossiblyUnboundVariable=false, reportArgumentType=false, reportCallIssue=false
"""Triton kernels for CUDA: the weight gradients of a convolution, record by record.

Without Triton `AVAILABLE` is false, and the fused engine computes these gradients with torch.
"""

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
    def _tile_of_record(
        images, gradients, record, tile, height, width,
        image_stride, image_row, image_column, gradient_stride, gradient_row, gradient_column,
        M: tl.constexpr, C: tl.constexpr, HO: tl.constexpr, WO: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr,
        SY: tl.constexpr, SX: tl.constexpr, PY: tl.constexpr, PX: tl.constexpr, DY: tl.constexpr, DX: tl.constexpr,
        COPIES: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    ):  # fmt: skip
        # A BM × BN tile of one record's gradient, in float32: M output channels by (kernel row, column, channel).
        # It multiplies output gradients and shifted inputs over all positions of all copies.
        N: tl.constexpr = KH * KW * C
        T: tl.constexpr = HO * WO
        tiles_n: tl.constexpr = (N + BN - 1) // BN
        m = (tile // tiles_n) * BM + tl.arange(0, BM)
        if C % BN == 0:
            # The whole tile is one kernel position: a scalar shift, and neighbouring channels.
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
        return total, m, n

    @triton.jit
    def _record_gradients(
        images, gradients, stored, squares, height, width,
        image_stride, image_row, image_column, gradient_stride, gradient_row, gradient_column,
        M: tl.constexpr, C: tl.constexpr, HO: tl.constexpr, WO: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr,
        SY: tl.constexpr, SX: tl.constexpr, PY: tl.constexpr, PX: tl.constexpr, DY: tl.constexpr, DX: tl.constexpr,
        COPIES: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
        STORES: tl.constexpr,
    ):  # fmt: skip
        # One program for each tile of each record.
        N: tl.constexpr = KH * KW * C
        tiles: tl.constexpr = ((N + BN - 1) // BN) * ((M + BM - 1) // BM)
        # In one dimension, since the others are limited to 65,535; the tiles of a record together: they share inputs.
        tile = tl.program_id(0) % tiles
        record = (tl.program_id(0) // tiles).to(tl.int64)
        value, m, n = _tile_of_record(
            images, gradients, record, tile, height, width,
            image_stride, image_row, image_column, gradient_stride, gradient_row, gradient_column,
            M, C, HO, WO, KH, KW, SY, SX, PY, PX, DY, DX, COPIES, PRECISION, BM, BN, BK,
        )  # fmt: skip
        inside = (m < M)[:, None] & (n < N)[None, :]
        if STORES:
            # The norm of what is stored, rounding included.
            value = value.to(stored.dtype.element_ty)
            tl.store(stored + record * M * N + m[:, None] * N + n[None, :], value, mask=inside)
        kept = tl.where(inside, value.to(tl.float32), 0.0)
        tl.store(squares + record * tiles + tile, tl.sum(tl.sum(kept * kept, axis=1), axis=0))

    @triton.jit
    def _weighted_sum(
        images, gradients, factors, sums, records, height, width,
        image_stride, image_row, image_column, gradient_stride, gradient_row, gradient_column,
        M: tl.constexpr, C: tl.constexpr, HO: tl.constexpr, WO: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr,
        SY: tl.constexpr, SX: tl.constexpr, PY: tl.constexpr, PX: tl.constexpr, DY: tl.constexpr, DX: tl.constexpr,
        COPIES: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
        EACH: tl.constexpr,
    ):  # fmt: skip
        # One program adds up a tile of EACH records, in float64. The numbers are bit for bit those whose squares were
        # taken: the same products in the same order.
        N: tl.constexpr = KH * KW * C
        tiles: tl.constexpr = ((N + BN - 1) // BN) * ((M + BM - 1) // BM)
        tile = tl.program_id(0) % tiles
        part = (tl.program_id(0) // tiles).to(tl.int64)
        total = tl.zeros((BM, BN), dtype=tl.float64)
        m = tl.arange(0, BM)
        n = tl.arange(0, BN)
        for record in range(part * EACH, min(part * EACH + EACH, records)):
            value, m, n = _tile_of_record(
                images, gradients, record, tile, height, width,
                image_stride, image_row, image_column, gradient_stride, gradient_row, gradient_column,
                M, C, HO, WO, KH, KW, SY, SX, PY, PX, DY, DX, COPIES, PRECISION, BM, BN, BK,
            )  # fmt: skip
            factor = tl.load(factors + record)
            # A factor of 0 leaves a record out whatever it holds.
            total += tl.where(factor > 0, value, 0.0).to(tl.float64) * factor
        inside = (m < M)[:, None] & (n < N)[None, :]
        tl.store(sums + part * M * N + m[:, None] * N + n[None, :], total, mask=inside)


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
    wide = itemsize == 2 and channels >= 128
    # At least what a matrix unit takes.
    rows = min(128, max(16, triton.next_power_of_2(m)))
    depth = _depth(positions, itemsize)
    return Tiling(rows, 256 if wide else 128, depth, 8 if wide and rows >= 64 else 4, 3)


def squaring_tiling_for(m: int, positions: int, itemsize: int) -> Tiling:
    """The same depth as for summing: then every number is the same bit for bit, whatever the tile around it."""
    return Tiling(min(128, max(16, triton.next_power_of_2(m))), 128, _depth(positions, itemsize), 4, 3)


def summing_tiling_for(m: int, positions: int, itemsize: int) -> Tiling:
    """Smaller tiles: a program also keeps their sum in float64."""
    return Tiling(min(64, max(16, triton.next_power_of_2(m))), 64, _depth(positions, itemsize), 4, 3)


def _depth(positions: int, itemsize: int) -> int:
    """How many positions are multiplied at a time. It decides the order of additions, and so the rounding."""
    return min(64 if itemsize == 2 else 32, max(16, triton.next_power_of_2(positions)))


# How many programs keep a GPU busy; the records of a sum are divided among them.
_PROGRAMS = 2048


def record_gradients(
    images: Tensor, output_gradients: Tensor, geometry: list[int], copies: int, *, allow_tf32: bool
) -> tuple[Tensor, Tensor]:
    """Each record's weight gradient of a convolution with one group, and its squared norm. Channels last."""
    m, positions = output_gradients.shape[1], output_gradients.shape[2] * output_gradients.shape[3]
    tiling = tiling_for(m, images.shape[1], positions, images.element_size())
    call = _Call.of(images, output_gradients, geometry, copies, tiling, allow_tf32=allow_tf32)
    stored = images.new_empty((call.records, m, call.columns))
    squares = images.new_empty((call.records, call.tiles), dtype=torch.float32)
    _record_gradients[(call.tiles * call.records,)](
        call.images, call.output_gradients, stored, squares, *call.strides, **call.sizes, STORES=True
    )
    return stored, squares.sum(dim=1)


def record_squares(
    images: Tensor, output_gradients: Tensor, geometry: list[int], copies: int, *, allow_tf32: bool
) -> Tensor:
    """The squared norms of the gradients that `weighted_sum` adds up."""
    m, positions = output_gradients.shape[1], output_gradients.shape[2] * output_gradients.shape[3]
    tiling = squaring_tiling_for(m, positions, images.element_size())
    call = _Call.of(images, output_gradients, geometry, copies, tiling, allow_tf32=allow_tf32)
    squares = images.new_empty((call.records, call.tiles), dtype=torch.float32)
    _record_gradients[(call.tiles * call.records,)](
        call.images, call.output_gradients, squares, squares, *call.strides, **call.sizes, STORES=False
    )
    return squares.sum(dim=1)


def weighted_sum(
    images: Tensor, output_gradients: Tensor, factors: Tensor, geometry: list[int], copies: int, *, allow_tf32: bool
) -> Tensor:
    """(m, columns), in float64: Σ over records of factor · weight gradient."""
    m, positions = output_gradients.shape[1], output_gradients.shape[2] * output_gradients.shape[3]
    tiling = summing_tiling_for(m, positions, images.element_size())
    call = _Call.of(images, output_gradients, geometry, copies, tiling, allow_tf32=allow_tf32)
    each = triton.cdiv(call.records, max(1, _PROGRAMS // call.tiles))
    parts = triton.cdiv(call.records, each)
    sums = images.new_empty((parts, m, call.columns), dtype=torch.float64)
    _weighted_sum[(call.tiles * parts,)](
        call.images, call.output_gradients, factors.contiguous(), sums, call.records, *call.strides,
        **call.sizes, EACH=each,
    )  # fmt: skip
    return sums.sum(dim=0)


class _Call(NamedTuple):
    """The arguments that all these kernels take."""

    images: Tensor
    output_gradients: Tensor
    records: int
    columns: int
    tiles: int
    strides: tuple[int, ...]
    sizes: dict[str, int | str]

    @staticmethod
    def of(
        images: Tensor,
        output_gradients: Tensor,
        geometry: list[int],
        copies: int,
        tiling: Tiling,
        *,
        allow_tf32: bool,
    ) -> "_Call":
        height, width, stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x = geometry
        count, channels, rows, columns = images.shape
        _, m, out_y, out_x = output_gradients.shape
        n = height * width * channels
        is_float32 = images.dtype == torch.float32
        return _Call(
            images=images.contiguous(memory_format=torch.channels_last),
            output_gradients=output_gradients.contiguous(memory_format=torch.channels_last),
            records=count // copies,
            columns=n,
            tiles=triton.cdiv(m, tiling.m) * triton.cdiv(n, tiling.n),
            # Spelled out: an image with one channel or one column has arbitrary strides.
            strides=(
                rows, columns,
                rows * columns * channels, columns * channels, channels,
                out_y * out_x * m, out_x * m, m,
            ),
            sizes={
                "M": m, "C": channels, "HO": out_y, "WO": out_x, "KH": height, "KW": width,
                "SY": stride_y, "SX": stride_x, "PY": pad_y, "PX": pad_x, "DY": dilation_y, "DX": dilation_x,
                "COPIES": copies, "PRECISION": "tf32" if is_float32 and allow_tf32 else "ieee",
                "BM": tiling.m, "BN": tiling.n, "BK": tiling.k,
                "num_warps": tiling.warps, "num_stages": tiling.stages,
            },
        )  # fmt: skip
