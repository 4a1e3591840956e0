"""What every clipping engine does: records in, the sum of their clipped gradients out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, TypeAlias

import torch
from torch import Tensor, nn

from dpal.errors import InvalidArgument

# A batch is a tensor, or a dictionary of tensors for text models. The first dimension counts records.
Batch: TypeAlias = Tensor | Mapping[str, Tensor]
# One loss per record, from the model's outputs and the targets.
LossFunction: TypeAlias = Callable[[Any, Tensor], Tensor]
Gradients: TypeAlias = dict[str, Tensor]


class NotCoveredError(Exception):
    """This engine cannot train the model; the text says why. Another engine is tried then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedSum:
    """The sum of clipped gradients by parameter name, in float64, and how many records were not finite.

    A record whose gradient is not finite contributes zero.
    """

    # Neither is shown: both depend on which records were drawn.
    gradients: Gradients = field(repr=False)
    # A tensor: reading its value makes the host wait for the device.
    not_finite: Tensor = field(repr=False)


@dataclass(slots=True, kw_only=True)
class ClippingEngine(ABC):
    """Computes the gradient of each record's own loss, scales it to a norm of at most max_grad_norm, and adds them up.

    With copies above 1 the batch holds that many augmented copies of each record, one after the other; a record's
    gradient is then the mean over its copies.

    One record moves the sum by at most max_grad_norm, rounding included (docs/maths/floating-point.md). For that, sums
    are in float64, and the arithmetic of a record does not depend on who else was drawn: a batch always has
    `physical_records` rows (default: as many as are given), and `step_records`, the most that one step can draw
    (default: the rows of the batch), bounds what rounding can add.
    """

    name: ClassVar[str]
    model: nn.Module
    loss: LossFunction
    max_grad_norm: float
    copies: int = 1
    precision: str = "float32"
    physical_records: int | None = None
    step_records: int | None = None

    def trainable(self) -> dict[str, nn.Parameter]:
        """Every parameter that trains, once, under its first name."""
        return {name: parameter for name, parameter in self.model.named_parameters() if parameter.requires_grad}

    def clipped_sum(self, batch: Batch, targets: Tensor, present: Tensor | None = None) -> ClippedSum:
        """The clipped sum over one physical batch. Rows that are not `present` are padding."""
        count = record_count(batch) // self.copies
        if present is None:
            present = torch.ones(count, dtype=torch.bool, device=targets.device)
        if count == 0:
            zeros = {
                name: torch.zeros_like(parameter, dtype=torch.float64, requires_grad=False)
                for name, parameter in self.trainable().items()
            }
            return ClippedSum(gradients=zeros, not_finite=torch.zeros((), dtype=torch.int64))
        missing = 0 if self.physical_records is None else self.physical_records - count
        if missing > 0:
            batch, targets = _filled_up(batch, targets, missing, self.copies)
            present = nn.functional.pad(present, (0, missing))
        # A caller's autocast would round what was measured. Engines choose their precision themselves.
        with torch.autocast(targets.device.type, enabled=False):
            return self._clipped_sum(batch, targets, present)

    @abstractmethod
    def _clipped_sum(self, batch: Batch, targets: Tensor, present: Tensor) -> ClippedSum: ...

    def clip_factors(self, norms: Tensor, present: Tensor, positions: int = 0) -> Tensor:
        """The factor that scales each record's gradient to the bound, in float64; zero for records that cannot be used.

        `positions` counts the positions of a record that are summed together with all others' (`rounding_margin`).
        """
        rows = len(norms)
        margin = rounding_margin(max(self.step_records or 0, rows), rows, positions)
        bound = self.max_grad_norm * (1 - margin)
        usable = present & is_usable(norms, self.max_grad_norm)
        return torch.where(usable, bound / norms.double().clamp(min=bound), 0.0)

    def prepare_for_check(self) -> None:
        """Put the model in a mode without randomness in which the engine works."""
        self.model.eval()

    @abstractmethod
    def record_norms(self, batch: Batch, targets: Tensor) -> Tensor:
        """Each record's gradient norm before clipping, to check one engine against another."""


def _filled_up(batch: Batch, targets: Tensor, missing: int, copies: int) -> tuple[Batch, Tensor]:
    """More rows at the end, copies of the first record."""
    index = torch.arange(len(targets) + missing * copies, device=targets.device)
    index = torch.where(index < len(targets), index, index % copies)
    return rows(batch, index), targets[index]


def record_count(batch: Batch) -> int:
    """How many rows a batch has."""
    first = batch if isinstance(batch, Tensor) else next(iter(batch.values()))
    return first.shape[0]


def rows(batch: Batch, index: Tensor | slice) -> Batch:
    """Some rows of a batch."""
    if isinstance(batch, Tensor):
        return batch[index]
    return {name: array[index] for name, array in batch.items()}


def called(model: Callable[..., Any], batch: Batch) -> Any:
    """The model's outputs. A tensor is passed as its only argument, a dictionary as named arguments."""
    return model(batch) if isinstance(batch, Tensor) else model(**batch)


def called_with(model: nn.Module, state: Mapping[str, Tensor], given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """The model's outputs with other parameters and buffers, by their names in `named_parameters`.

    Each attribute is replaced once: where a layer is used in two places, torch's `functional_call` alone would replace
    its parameters twice, and leave the replacement there afterwards.
    """
    names = {id(tensor): name for name, tensor in chain(model.named_parameters(), model.named_buffers())}
    places = {
        f"{prefix}.{key}" if prefix else key: state[names[id(tensor)]]
        for prefix, layer in model.named_modules()
        for key, tensor in chain(
            layer.named_parameters(recurse=False, remove_duplicate=False),
            layer.named_buffers(recurse=False, remove_duplicate=False),
        )
    }
    return torch.func.functional_call(model, places, tuple(given), dict(named), tie_weights=False)


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


def rounding_margin(step_records: int, rows: int, positions: int) -> float:
    """By how much of max_grad_norm one record can change the rounding of a step's whole sum, at most.

    For any order of summation a sum of n numbers is off by at most n roundings of the sum of their sizes. The sizes
    are public: the most records of a step, the rows of a physical batch, and the positions of a record where those of
    all records are summed together, in which terms that cancel may be `LARGEST_CANCELLATION` times the whole.
    """
    batches = -(-step_records // rows)
    margin = _UNIT_ROUNDING * step_records * (rows + batches + rows * positions * LARGEST_CANCELLATION)
    if margin > _LARGEST_MARGIN:
        raise InvalidArgument(
            "max_physical_batch_size",
            rows,
            f"smaller: with {step_records:,} records in one step, rounding could add too much",
        )
    return margin


def clipped_from_stored(engine: ClippingEngine, stored: Gradients, present: Tensor) -> ClippedSum:
    """The clipped sum of gradients that were stored by record."""
    norms = row_norms(stored) * (1 + NORM_ROUNDING)
    factors = engine.clip_factors(norms, present)
    blank_broken(stored, norms)
    gradients = {name: weighted_sum(by_record, factors) for name, by_record in stored.items()}
    return ClippedSum(gradients=gradients, not_finite=(present & ~is_usable(norms, engine.max_grad_norm)).sum())


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
