"""The arithmetic of clipping: norms, sums in float64, and what rounding can add (docs/maths/floating-point.md)."""

import math
from typing import TypeAlias

import torch
from torch import Tensor

from dpal.errors import InvalidArgument

Gradients: TypeAlias = dict[str, Tensor]


def row_norms(stored: Gradients) -> Tensor:
    """The norm of each record's whole gradient."""
    squares = [rows.reshape(len(rows), -1).double().square().sum(dim=1) for rows in stored.values()]
    return torch.stack(squares).sum(dim=0).sqrt()


def is_usable(norms: Tensor, max_grad_norm: float) -> Tensor:
    """Finite, and not so large that the gradient itself may have lost digits to overflow."""
    return norms < max_grad_norm * 2.0**100


# Norms are added up in float32 over short rows, then in float64. This much covers the rounding of that.
NORM_ROUNDING = 2.0**-15
# Float64, with room for the rounding of factors and products on the way into a sum.
_UNIT_ROUNDING = 2.0**-51
# Where positions of all records are summed together, no record's terms may exceed its bound by more than this factor.
LARGEST_CANCELLATION = 2.0**8
_LARGEST_MARGIN = 0.25
# The distance of the numbers that a batch's sum is rounded to is below this much of the largest sum of a step.
_GRID = 2.0**-50


def rounding_margin(step_records: int, rows: int, positions: int, numbers: int = 0) -> float:
    """By how much of max_grad_norm one record can change the rounding of a step's whole sum, at most.

    For any order of summation a sum of n numbers is off by at most n roundings of the sum of their sizes. The sizes
    are public: the most records of a step, the rows of a physical batch, and the positions of a record where those of
    all records are summed together, in which terms that cancel may be `LARGEST_CANCELLATION` times the whole; and how
    many numbers a gradient has, each of which is rounded to the grid of `on_grid`.
    """
    batches = -(-step_records // rows)
    margin = _UNIT_ROUNDING * step_records * (rows + batches + rows * positions * LARGEST_CANCELLATION)
    margin += _GRID * step_records * math.sqrt(numbers)
    if margin > _LARGEST_MARGIN:
        raise InvalidArgument(
            "max_physical_batch_size",
            rows,
            f"smaller: with {step_records:,} records in one step, rounding could add too much",
        )
    return margin


def sum_grid(max_grad_norm: float, step_records: int) -> float:
    """A power of two that float64 adds multiples of without rounding, up to four times the largest sum of a step."""
    return 2.0 ** (math.ceil(math.log2(max_grad_norm * step_records)) - 51)


def on_grid(batch_sum: Tensor, grid: float) -> Tensor:
    """The nearest multiples of the grid. They add up to the same bits in any order, in any number of processes."""
    # Next to this number, float64 has the grid's multiples and nothing between them.
    anchor = 1.5 * 2.0**52 * grid
    return (batch_sum + anchor).sub_(anchor)


def blank_broken(stored: Gradients, norms: Tensor) -> None:
    """Put zeros where a record's gradient is not finite: zero times infinity is not zero."""
    broken = torch.nonzero(~torch.isfinite(norms)).flatten()
    if len(broken):
        for by_record in stored.values():
            by_record.index_fill_(0, broken, 0.0)


# How many columns are converted to float64 at a time: few enough to stay in a CPU's cache.
_COLUMNS = 4096


def weighted_sum(stored: Tensor, factors: Tensor) -> Tensor:
    """Σ over records of factor · gradient, in float64."""
    flat = stored.reshape(len(stored), -1)
    total = factors.new_empty(flat.shape[1])
    # Allocated once for all columns: allocating it each time would take most of the time.
    exact = factors.new_empty(len(flat), min(_COLUMNS, flat.shape[1]))
    for start in range(0, flat.shape[1], _COLUMNS):
        columns = flat[:, start : start + _COLUMNS]
        total[start : start + _COLUMNS] = factors @ exact[:, : columns.shape[1]].copy_(columns)
    return total.reshape(stored.shape[1:])
