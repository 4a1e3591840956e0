"""Units with different numbers of records, and what training on them must give: a plain loop over their records."""

import numpy as np
import torch
from networks import cross_entropy
from numpy.typing import NDArray
from torch import Tensor, nn

from dpal.training.batches import Batch, called, rows
from dpal.training.engines.engine import ClippedSum, ClippingEngine
from dpal.training.sampling import BLANK
from dpal.training.units import Units


def ragged(sizes: list[int], width: int | None = None) -> NDArray[np.int64]:
    """A table of units with so many records, numbered one after the other, in seats that are not always the first."""
    width = max(sizes) if width is None else width
    table, start = np.full((len(sizes), width), BLANK, dtype=np.int64), 0
    for unit, size in enumerate(sizes):
        seats = np.sort(np.random.default_rng(unit).permutation(width)[:size])
        table[unit, seats] = np.arange(start, start + size)
        start += size
    return table


def plain_units(
    model: nn.Module, batch: Batch, targets: Tensor, table: NDArray[np.int64], max_grad_norm: float, copies: int = 1
) -> dict[str, Tensor]:
    """The clipped sum, one record (with its copies) at a time: averaged within a unit, then clipped, then added up."""
    named = [(name, each) for name, each in model.named_parameters() if each.requires_grad]
    total = {name: torch.zeros_like(each, dtype=torch.float64) for name, each in named}
    for unit in table:
        members = [int(position) for position in unit if position != BLANK]
        mean = {name: torch.zeros_like(each, dtype=torch.float64) for name, each in named}
        for member in members:
            here = slice(member * copies, (member + 1) * copies)
            loss = cross_entropy(called(model, rows(batch, here)), targets[here]).mean()
            found = torch.autograd.grad(loss, [each for _, each in named], allow_unused=True)
            for (name, _), gradient in zip(named, found, strict=True):
                if gradient is not None:
                    mean[name] += gradient.double() / len(members)
        norm = float(torch.stack([each.square().sum() for each in mean.values()]).sum().sqrt())
        if np.isfinite(norm):
            for name, each in mean.items():
                total[name] += each * min(1.0, max_grad_norm / max(norm, 1e-300))
    return total


def sum_over_units(
    engine: ClippingEngine, batch: Batch, targets: Tensor, table: NDArray[np.int64], copies: int = 1
) -> ClippedSum:
    """One physical batch of all units, seated as in training. A unit without records is absent."""
    units = Units.of_table(table, len(targets) // copies)
    present = units.records[:, 0] != BLANK
    seats = np.where(present, np.arange(len(units)), int(present.argmax()))
    records = units.positions(seats)
    index = torch.from_numpy((records[:, None] * copies + np.arange(copies)).reshape(-1))
    weights = units.row_weights(seats, copies)
    return engine.clipped_sum(
        rows(batch, index),
        targets[index],
        torch.from_numpy(present),
        None if weights is None else torch.from_numpy(weights),
    )
