# pyright: reportMissingTypeStubs=false
"""Gradients by record through Opacus's hooks, for every layer that Opacus supports."""

import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.modules.dropout import _DropoutNd  # pyright: ignore[reportPrivateUsage] (all dropouts derive from it)

from dpal.training.batches import Batch, called
from dpal.training.engines.clipping import Gradients, row_norms
from dpal.training.engines.engine import (
    ClippedSum,
    ClippingEngine,
    NotCoveredError,
    clipped_from_stored,
    combined_loss,
)
from dpal.training.engines.engine_checks import buffers_kept, modes_kept
from dpal.training.precision import tf32_allowed


@dataclass(slots=True, kw_only=True)
class OpacusEngine(ClippingEngine):
    """Stores every record's whole gradient."""

    name: ClassVar[str] = "opacus"
    _hooked: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            from opacus.grad_sample import GradSampleModule
            from opacus.validators import ModuleValidator
        except ImportError as error:
            raise NotCoveredError("Opacus is not installed") from error
        with modes_kept(self.model):
            # Opacus refuses models in evaluation mode, as they are after a prediction.
            self.model.train()
            problems = ModuleValidator.validate(self.model, strict=False)
        if problems:
            raise NotCoveredError("; ".join(str(problem) for problem in problems))
        try:
            # For parameters without a rule Opacus would use functorch; our own vmap engine is for those.
            self._hooked = GradSampleModule(self.model, loss_reduction="sum", force_functorch=False, strict=True)
        except (NotImplementedError, ValueError) as error:
            raise NotCoveredError(str(error)) from error
        self._hooked.remove_hooks()

    def prepare_for_check(self) -> None:
        # Opacus's hooks work in training mode only. Without dropout that is prediction.
        for module in self.model.modules():
            module.training = not isinstance(module, _DropoutNd)

    def _clipped_sum(self, batch: Batch, targets: Tensor, present: Tensor, weights: Tensor | None) -> ClippedSum:
        # The hooks run the model itself: whatever it stores about records must not stay.
        with buffers_kept(self.model):
            return clipped_from_stored(self, self._stored(batch, targets, weights), present)

    def record_norms(self, batch: Batch, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        return row_norms(self._stored(batch, targets, weights))

    def _stored(self, batch: Batch, targets: Tensor, weights: Tensor | None) -> Gradients:
        trainable = self.trainable()
        if not self.model.training:
            with modes_kept(self.model):
                self.prepare_for_check()
                return self._stored(batch, targets, weights)
        self._hooked.add_hooks(loss_reduction="sum", batch_first=True)
        try:
            with warnings.catch_warnings(), torch.enable_grad(), tf32_allowed(self.precision == "tf32"):
                # Opacus's hooks warn about how torch's hooks see their inputs.
                warnings.simplefilter("ignore")
                with torch.autocast(targets.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
                    outputs = called(self._hooked, _channels_first(batch))
                combined_loss(self.loss(outputs, targets), self.copies, weights).backward()
            return {name: self._by_record(parameter, len(targets)) for name, parameter in trainable.items()}
        finally:
            for parameter in trainable.values():
                parameter.grad = None
                setattr(parameter, "grad_sample", None)  # noqa: B010 (an attribute of Opacus's own)
            self._hooked.remove_hooks()

    def _by_record(self, parameter: Any, count: int) -> Tensor:
        stored = parameter.grad_sample
        if stored is None:
            return parameter.detach().new_zeros((count // self.copies, *parameter.shape))
        return stored.detach().reshape(-1, self.copies, *parameter.shape).sum(dim=1)


def _channels_first(batch: Batch) -> Batch:
    """The batch with channels first in memory: Opacus 1.6 gives wrong gradients for images with channels last."""
    if isinstance(batch, Tensor):
        return batch.clone(memory_format=torch.contiguous_format)
    return {name: array.clone(memory_format=torch.contiguous_format) for name, array in batch.items()}
