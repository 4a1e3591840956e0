"""What every clipping engine does: records in, the sum of their clipped gradients out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, TypeAlias

import torch
from torch import Tensor, nn

from dpal.training.precision import tf32_allowed

# A batch is a tensor, or a dictionary of tensors as text models take it; the first dimension is the records'.
Batch: TypeAlias = Tensor | Mapping[str, Tensor]
# One loss a record, from the model's outputs and the targets.
LossFunction: TypeAlias = Callable[[Any, Tensor], Tensor]
Gradients: TypeAlias = dict[str, Tensor]

PRECISIONS = ("float32", "tf32", "bf16")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedSum:
    """The sum of clipped gradients by parameter name, in float32, and how many records went in or were not finite.

    A record whose gradient is not finite contributes zero.
    """

    # None of it is shown: how many were drawn is as private as who.
    gradients: Gradients = field(repr=False)
    records: int = field(repr=False)
    # A tensor: asking for its value makes the host wait for the device.
    not_finite: Tensor = field(repr=False)


@dataclass(slots=True, kw_only=True)
class ClippingEngine(ABC):
    """Computes, for each record, the gradient of its own loss, scaled to a norm of at most max_grad_norm, and adds up.

    With copies above 1 the batch holds that many augmented copies of each record, one after the other; a record's
    gradient is then the mean over its copies.
    """

    name: ClassVar[str]
    model: nn.Module
    loss: LossFunction
    max_grad_norm: float
    copies: int = 1
    precision: str = "float32"

    def trainable(self) -> dict[str, nn.Parameter]:
        """Every parameter that trains, once, under its first name."""
        return {name: parameter for name, parameter in self.model.named_parameters() if parameter.requires_grad}

    def clipped_sum(self, batch: Batch, targets: Tensor) -> ClippedSum:
        """The clipped sum over one physical batch, which may be empty."""
        if record_count(batch) == 0:
            zeros = {
                name: torch.zeros_like(parameter, dtype=torch.float32, requires_grad=False)
                for name, parameter in self.trainable().items()
            }
            return ClippedSum(gradients=zeros, records=0, not_finite=torch.zeros((), dtype=torch.int64))
        # A caller's autocast would round what was measured; engines choose their precision themselves.
        with torch.autocast(targets.device.type, enabled=False):
            return self._clipped_sum(batch, targets)

    @abstractmethod
    def _clipped_sum(self, batch: Batch, targets: Tensor) -> ClippedSum: ...

    def prepare_for_check(self) -> None:
        """Put the model in a mode without chance in which the engine works."""
        self.model.eval()

    @abstractmethod
    def record_norms(self, batch: Batch, targets: Tensor) -> Tensor:
        """Each record's gradient norm before clipping, for checks of one engine against another."""


def record_count(batch: Batch) -> int:
    """How many rows a batch has."""
    first = batch if isinstance(batch, Tensor) else next(iter(batch.values()))
    return first.shape[0]


def rows(batch: Batch, index: Tensor | slice) -> Batch:
    """Some rows of a batch."""
    if isinstance(batch, Tensor):
        return batch[index]
    return {name: part[index] for name, part in batch.items()}


def called(model: Callable[..., Any], batch: Batch) -> Any:
    """The model's outputs: a tensor is its only argument, a dictionary its named ones."""
    return model(batch) if isinstance(batch, Tensor) else model(**batch)


def called_with(model: nn.Module, state: Mapping[str, Tensor], given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """The model's outputs with other parameters and buffers, by the names that `named_parameters` has.

    Every place of a tensor is filled once: where one layer stands in two places, torch's `functional_call` alone would
    fill it twice, and leave it with the other parameters afterwards.
    """
    names = {id(each): name for name, each in chain(model.named_parameters(), model.named_buffers())}
    places = {
        f"{prefix}.{key}" if prefix else key: state[names[id(each)]]
        for prefix, layer in model.named_modules()
        for key, each in chain(
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
    """Finite, and not so large that the clip factor would lose digits in float32, and with them the bound."""
    return norms < max_grad_norm * 2.0**100


def clip_factors(norms: Tensor, max_grad_norm: float, count: int) -> Tensor:
    """What scales each record's gradient to the bound; zero where it cannot be used.

    The bound is lower the more records are added up in float32: how their sum is rounded depends on each of them too.
    Measured for aligned gradients, that moved the sum by up to 0.6 · count · 2⁻²³ of the bound.
    """
    bound = max_grad_norm * (1 - min(count * 2.0**-23, 0.5))
    return torch.where(is_usable(norms, max_grad_norm), bound / norms.clamp(min=bound), 0.0).float()


def clipped_from_stored(stored: Gradients, max_grad_norm: float) -> ClippedSum:
    """The clipped sum of gradients that were stored by record."""
    norms = row_norms(stored)
    finite = is_usable(norms, max_grad_norm)
    factors = clip_factors(norms * (1 + 2.0**-20), max_grad_norm, len(norms))
    gradients: Gradients = {}
    for name, each in stored.items():
        # Zero times infinity is not zero.
        kept = torch.where(finite.reshape(-1, *[1] * (each.ndim - 1)), each, 0.0).float()
        # In full float32: TF32 would round the factors.
        with tf32_allowed(False):
            gradients[name] = torch.tensordot(factors, kept, dims=1)
    return ClippedSum(gradients=gradients, records=len(norms), not_finite=(~finite).sum())
