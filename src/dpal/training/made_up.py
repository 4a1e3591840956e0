"""Records that nobody has, shaped like real ones.

An engine is chosen and a model tried on these: on real records, one record could decide how everybody's gradients are
rounded, or whether a phase ends at all, and no noise covers that.
"""

import torch
from torch import Tensor

from dpal.training.engine import Batch

_SEED = 20_261_116


def made_up(like: tuple[Batch, Tensor], count: int) -> tuple[Batch, Tensor]:
    """So many records and targets. Of the real ones only shape, kind and device are looked at."""
    generator = torch.Generator(device="cpu").manual_seed(_SEED)
    batch, targets = like
    records: Batch
    if isinstance(batch, Tensor):
        records = _values(batch, count, generator)
    else:
        records = {name: _values(part, count, generator) for name, part in batch.items()}
    if targets.is_floating_point():
        return records, torch.randint(0, 2, (count, *targets.shape[1:]), generator=generator, device="cpu").to(targets)
    # The only class that every classifier has.
    return records, torch.zeros((count, *targets.shape[1:]), dtype=targets.dtype, device=targets.device)


def _values(like: Tensor, count: int, generator: torch.Generator) -> Tensor:
    shape = (count, *like.shape[1:])
    if like.is_floating_point():
        return torch.rand(shape, generator=generator, device="cpu").to(like)
    # Zeros and ones are valid token numbers and masks; a mask without a one would leave nothing.
    found = torch.randint(0, 2, shape, generator=generator, device="cpu")
    if found.ndim > 1:
        found[..., 0] = 1
    return found.to(like)
