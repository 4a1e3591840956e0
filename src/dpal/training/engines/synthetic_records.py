"""Records that nobody has, shaped like real ones.

An engine is chosen and a model tried on these: on real records, one record could decide how everybody's gradients are
rounded, or whether a phase ends at all, and no noise covers that.
"""

import torch
from torch import Tensor

from dpal.training.engines.engine import Batch

_SEED = 20_261_116


def made_up(like: tuple[Batch, Tensor]) -> tuple[Batch, Tensor]:
    """As many records and targets. Of the real ones only shape, kind, device and order in memory are looked at."""
    generator = torch.Generator(device="cpu").manual_seed(_SEED)
    batch, targets = like
    records: Batch
    if isinstance(batch, Tensor):
        records = _values(batch, generator)
    else:
        records = {name: _values(part, generator) for name, part in batch.items()}
    # Classes: the only one that every classifier has. Targets for several labels: zeros and ones.
    aims = _filled(
        targets, _zeros_and_ones(targets, generator) if targets.is_floating_point() else torch.tensor(0, device="cpu")
    )
    return records, aims


def _values(like: Tensor, generator: torch.Generator) -> Tensor:
    if like.is_floating_point():
        return _filled(like, torch.rand(like.shape, generator=generator, device="cpu"))
    # Zeros and ones are valid token numbers and masks; a mask without a one would leave nothing.
    found = _zeros_and_ones(like, generator)
    if found.ndim > 1:
        found[..., 0] = 1
    return _filled(like, found)


def _zeros_and_ones(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randint(0, 2, like.shape, generator=generator, device="cpu")


def _filled(like: Tensor, values: Tensor) -> Tensor:
    # In the same order in memory, so that code compiled for these records is the code that trains.
    return torch.empty_like(like).copy_(values)
