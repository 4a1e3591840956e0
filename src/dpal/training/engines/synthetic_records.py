"""Synthetic records, shaped like real ones.

An engine is chosen and a model is tried on these. With real records, a single one could decide how everyone's gradients
are rounded, or whether a phase ends at all, and no noise would hide that.
"""

import torch
from torch import Tensor

from dpal.training.batches import Batch

_SEED = 20_261_116


def synthetic_like(real: tuple[Batch, Tensor]) -> tuple[Batch, Tensor]:
    """As many records and targets. Only the shape, dtype, device and memory layout of the real ones are used."""
    generator = torch.Generator(device="cpu").manual_seed(_SEED)
    batch, targets = real
    records: Batch
    if isinstance(batch, Tensor):
        records = _values(batch, generator)
    else:
        records = {name: _values(array, generator) for name, array in batch.items()}
    # Several labels per record: zeros and ones. One class per record: class 0, the only one that every classifier has.
    several = targets.is_floating_point()
    labels = _zeros_and_ones(targets, generator) if several else torch.tensor(0, device="cpu")
    return records, _filled(targets, labels)


def _values(like: Tensor, generator: torch.Generator) -> Tensor:
    if like.is_floating_point():
        return _filled(like, torch.rand(like.shape, generator=generator, device="cpu"))
    # Zeros and ones are valid token numbers and masks. A mask needs at least one 1.
    values = _zeros_and_ones(like, generator)
    if values.ndim > 1:
        values[..., 0] = 1
    return _filled(like, values)


def _zeros_and_ones(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randint(0, 2, like.shape, generator=generator, device="cpu")


def _filled(like: Tensor, values: Tensor) -> Tensor:
    # With the same memory layout, so that the code compiled for these records is the code that trains.
    return torch.empty_like(like).copy_(values)
