"""Gradients by record through torch.func: slow and memory-hungry, but for any model that does not mix records."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dpal.training.batches import Batch, called, called_with
from dpal.training.engines.clipping import Gradients, row_norms
from dpal.training.engines.engine import ClippedSum, ClippingEngine, clipped_from_stored, combined_loss
from dpal.training.precision import tf32_allowed


@dataclass(slots=True, kw_only=True)
class VmapEngine(ClippingEngine):
    """Stores every record's whole gradient."""

    name: ClassVar[str] = "vmap"

    def _clipped_sum(self, batch: Batch, targets: Tensor, present: Tensor, weights: Tensor | None) -> ClippedSum:
        return clipped_from_stored(self, self._stored(batch, targets, weights), present)

    def record_norms(self, batch: Batch, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        return row_norms(self._stored(batch, targets, weights))

    def _stored(self, batch: Batch, targets: Tensor, weights: Tensor | None) -> Gradients:
        trainable = {name: parameter.detach() for name, parameter in self.trainable().items()}
        others = {
            name: parameter.detach() for name, parameter in self.model.named_parameters() if name not in trainable
        }
        others |= {name: buffer.clone() for name, buffer in self.model.named_buffers()}

        def loss_of_one(parameters: Gradients, record: Batch, target: Tensor, weight: Tensor | None) -> Tensor:
            def model(*given: Tensor, **named: Tensor) -> object:
                return called_with(self.model, {**parameters, **others}, given, named)

            with torch.autocast(target.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
                outputs = called(model, record)
            return combined_loss(self.loss(outputs, target), self.copies, weight)

        by_record = {
            name: array.reshape(-1, self.copies, *array.shape[1:])
            for name, array in (batch.items() if not isinstance(batch, Tensor) else [("", batch)])
        }
        records: Batch = by_record[""] if isinstance(batch, Tensor) else by_record
        target_rows = targets.reshape(-1, self.copies, *targets.shape[1:])
        weight_rows = None if weights is None else weights.reshape(-1, self.copies)
        in_dims = (None, 0, 0, None if weights is None else 0)
        over_records = torch.func.vmap(torch.func.grad(loss_of_one), in_dims=in_dims, randomness="different")
        with tf32_allowed(self.precision == "tf32"):
            return over_records(trainable, records, target_rows, weight_rows)
