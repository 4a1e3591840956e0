"""What every clipping engine does: records in, the sum of their clipped gradients out."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor, nn

from dpal.errors import InvalidArgument
from dpal.training.batches import Batch, LossFunction, record_count, rows
from dpal.training.engines.clipping import (
    NORM_ROUNDING,
    Gradients,
    blank_broken,
    is_usable,
    rounding_margin,
    row_norms,
    weighted_sum,
)


class NotCoveredError(Exception):
    """This engine cannot train the model; the text says why. Another engine is tried then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedSum:
    """The sum of clipped gradients by parameter name, in float64, and how many records (or units) were not finite.

    A record whose gradient is not finite contributes zero, and so does the whole unit it belongs to.
    """

    # Neither is shown: both depend on which records were drawn.
    gradients: Gradients = field(repr=False)
    # A tensor: reading its value makes the host wait for the device.
    not_finite: Tensor = field(repr=False)


@dataclass(slots=True, kw_only=True)
class ClippingEngine(ABC):
    """Computes the gradient of each record's own loss, scales it to a norm of at most max_grad_norm, and adds them up.

    With copies above 1 that many rows, one after the other, share one clipped gradient: the augmented copies of a
    record, or the records of a unit with their copies. That gradient is the mean over the rows, or the sum of their
    gradients with a weight for each. What is said of a record below is then true of the whole unit.

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

    def clipped_sum(
        self, batch: Batch, targets: Tensor, present: Tensor | None = None, weights: Tensor | None = None
    ) -> ClippedSum:
        """The clipped sum over one physical batch. Records or units that are not `present` are padding.

        `weights` has one number per row, 0 for the padding within a unit; None stands for 1 / copies. A unit with any
        row whose loss or gradient is not finite contributes zero, even if that row has no weight: padding should repeat
        a record of the same unit.
        """
        count = record_count(batch) // self.copies
        if weights is not None and weights.shape != (record_count(batch),):
            raise InvalidArgument("the shape of weights", tuple(weights.shape), f"({record_count(batch)},)")
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
            index = _filled_up(len(targets), missing, self.copies, targets.device)
            batch, targets = rows(batch, index), targets[index]
            weights = None if weights is None else weights[index]
            present = nn.functional.pad(present, (0, missing))
        # A caller's autocast would round what was measured. Engines choose their precision themselves.
        with torch.autocast(targets.device.type, enabled=False):
            return self._clipped_sum(batch, targets, present, weights)

    @abstractmethod
    def _clipped_sum(self, batch: Batch, targets: Tensor, present: Tensor, weights: Tensor | None) -> ClippedSum: ...

    def clip_factors(self, norms: Tensor, present: Tensor, positions: int = 0) -> Tensor:
        """The factor that scales each record's gradient to the bound, in float64; zero for records that cannot be used.

        `positions` counts the positions of a record that are summed together with all others' (`rounding_margin`).
        """
        rows = len(norms)
        numbers = sum(parameter.numel() for parameter in self.trainable().values())
        margin = rounding_margin(max(self.step_records or 0, rows), rows, positions, numbers)
        bound = self.max_grad_norm * (1 - margin)
        usable = present & is_usable(norms, self.max_grad_norm)
        return torch.where(usable, bound / norms.double().clamp(min=bound), 0.0)

    def prepare_for_check(self) -> None:
        """Put the model in a mode without randomness in which the engine works."""
        self.model.eval()

    @abstractmethod
    def record_norms(self, batch: Batch, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        """Each record's (or unit's) gradient norm before clipping, to check one engine against another."""


def combined_loss(losses: Tensor, copies: int, weights: Tensor | None) -> Tensor:
    """What is differentiated: its gradient is the mean over copies, or the weighted sum, of all rows' gradients."""
    return losses.sum() / copies if weights is None else (losses * weights).sum()


def _filled_up(count: int, missing: int, copies: int, device: torch.device) -> Tensor:
    """The rows, and more at the end: copies of the first record or unit."""
    index = torch.arange(count + missing * copies, device=device)
    return torch.where(index < count, index, index % copies)


def clipped_from_stored(engine: ClippingEngine, stored: Gradients, present: Tensor) -> ClippedSum:
    """The clipped sum of gradients that were stored by record."""
    norms = row_norms(stored) * (1 + NORM_ROUNDING)
    factors = engine.clip_factors(norms, present)
    blank_broken(stored, norms)
    gradients = {name: weighted_sum(by_record, factors) for name, by_record in stored.items()}
    return ClippedSum(gradients=gradients, not_finite=(present & ~is_usable(norms, engine.max_grad_norm)).sum())
