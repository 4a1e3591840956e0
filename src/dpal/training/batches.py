"""Batches of records, and how a model is called with one."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

# A batch is a tensor, or a dictionary of tensors for text models. The first dimension counts records.
Batch: TypeAlias = Tensor | Mapping[str, Tensor]
# One loss per record, from the model's outputs and the targets.
LossFunction: TypeAlias = Callable[[Any, Tensor], Tensor]


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
