"""Records and units made so that one more of them disturbs the rounding of all others as much as it can.

Nothing else of dpal is imported: the same constructions are tried on older versions of it (benchmarks).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from dpal.training.engines.engine import ClippingEngine

TUNINGS = 12
_WIDTH = 16


class Tie(nn.Module):
    """Weights of zero: every record's gradient has the direction of its input, whatever its size."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(_WIDTH, 2, bias=False)
        nn.init.zeros_(self.linear.weight)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.linear(inputs)


def ties(others: int, tuning: float, *, clipped: bool) -> tuple[Tensor, Tensor]:
    """Identical records, and one more that pulls the other way.

    The value that each of them adds is tuned, by the angle of the gradient, to lie near the middle between two numbers
    that a float32 sum can hold: the smallest change of it then rounds every addition the other way.
    """
    # Unclipped, the norm is just below 1; clipped, far above.
    inputs = torch.full((others + 1, _WIDTH), 10.0 if clipped else 0.99 / (_WIDTH / 2) ** 0.5 / 1.06)
    inputs[:, -1] *= 1 + 0.5 * (tuning + 0.5) / TUNINGS
    targets = torch.zeros(others + 1, dtype=torch.int64)
    targets[-1] = 1
    return inputs, targets


class Kink(nn.Module):
    """One hidden unit behind a ReLU: a record learns with all its gradient, or not at all."""

    def __init__(self, width: int) -> None:
        super().__init__()
        generator = torch.Generator("cpu").manual_seed(5)
        self.first, self.second = nn.Linear(width, 1, bias=False), nn.Linear(1, 2, bias=False)
        with torch.no_grad():
            self.first.weight.copy_(torch.randn(1, width, generator=generator, device="cpu"))
            self.second.weight.copy_(torch.tensor([[50.0], [-50.0]]))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.second(torch.relu(self.first(inputs)))


KINK_WIDTHS = (7, 33, 77)


def kinks(model: Kink, others: int, last: int = 1) -> Tensor | None:
    """Records whose neuron is on in a batch of so many rows, and off in one with more rows, as far as there are any.

    Their inputs are orthogonal to the weights, so rounding alone decides the sign, and how a row is rounded depends on
    the number of rows and on its place. The last record, or the last few, are ordinary ones. None: this machine rounds
    all rows alike.
    """
    weight = model.first.weight
    return _kinks(weight.shape[1], others, last, weight.device)


@cache
def _kinks(width: int, others: int, last: int, device: torch.device) -> Tensor | None:
    model = Kink(width).to(device)
    weight = model.first.weight.detach()[0]
    generator = torch.Generator("cpu").manual_seed(1)
    inputs = torch.randn(2000, width, generator=generator, device="cpu").to(device).double() * 100
    exact = weight.double()
    candidates = (inputs - (inputs @ exact)[:, None] * exact / (exact @ exact)).float()
    with torch.no_grad():
        few, more = (
            torch.stack([model.first(each.expand(count, -1).contiguous())[:others, 0] > 0 for each in candidates])
            for count in (others, others + last)
        )
    flips = few & ~more
    if not flips.any():
        return None
    chosen = [candidates[int(flips[:, row].int().argmax())] for row in range(others)]
    return torch.stack([*chosen, *[100 * weight.sign()] * last])


def units_of(records: tuple[Tensor, Tensor], rows: int) -> tuple[Tensor, Tensor, Tensor]:
    """Each record as a unit of several like it, and the weights of its rows: the first units have some seats empty."""
    inputs, targets = (each.repeat_interleave(rows, dim=0) for each in records)
    count = len(records[1])
    filled = 1 + torch.arange(count) % rows
    filled[-1] = rows
    weights = (torch.arange(rows) < filled[:, None]) / filled[:, None]
    return inputs, targets, weights.flatten()


def flat_sum(
    engine: "ClippingEngine",
    inputs: Tensor,
    targets: Tensor,
    present: Tensor | None = None,
    weights: Tensor | None = None,
) -> Tensor:
    gradients = engine.clipped_sum(inputs, targets, present, weights).gradients
    return torch.cat([each.flatten().double() for each in gradients.values()])


def move(engine: "ClippingEngine", inputs: Tensor, targets: Tensor, rows: int, weights: Tensor | None = None) -> float:
    """How far the last record or unit moves the sum: against its absence, and against a blank in its seat."""
    engine.physical_records = engine.step_records = rows
    own = engine.copies
    whole = flat_sum(engine, inputs, targets, None, weights)
    present = torch.ones(len(inputs) // own, dtype=torch.bool, device=inputs.device)
    present[-1] = False
    blank = torch.cat([inputs[:-own], inputs[:own]])
    others = None if weights is None else weights[:-own]
    absences = (
        flat_sum(engine, inputs[:-own], targets[:-own], None, others),
        flat_sum(engine, blank, targets, present, weights),
    )
    return max(float((whole - without).norm()) for without in absences)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Construction:
    """Variants of the same shape of records, or units, of which the last one disturbs the others."""

    what: str
    model: nn.Module
    # (variants, rows, width) and (variants, rows).
    inputs: Tensor = field(repr=False)
    targets: Tensor = field(repr=False)
    # The number of records or units in a physical batch.
    physical: int
    rows_per_unit: int = 1

    @property
    def others(self) -> int:
        return self.inputs.shape[1] // self.rows_per_unit - 1


def tied(
    others: int,
    variants: Sequence[tuple[float, bool]],
    *,
    max_grad_norm: float = 1.0,
    rows_per_unit: int = 1,
    device: torch.device | str = "cpu",
) -> Construction:
    """Ties with each of these tunings, of records that are clipped, or not."""
    made = [ties(others, tuning, clipped=clipped) for tuning, clipped in variants]
    inputs = torch.stack([inputs for inputs, _ in made]) * max_grad_norm
    targets = torch.stack([targets for _, targets in made])
    return Construction(
        what=f"ties with {others:,} other(s)",
        model=Tie().to(device),
        inputs=inputs.repeat_interleave(rows_per_unit, dim=1).to(device),
        targets=targets.repeat_interleave(rows_per_unit, dim=1).to(device),
        physical=others + 1,
        rows_per_unit=rows_per_unit,
    )


def kinked(
    others: int, *, max_grad_norm: float = 1.0, rows_per_unit: int = 1, device: torch.device | str = "cpu"
) -> Iterator[Construction]:
    """Kinks in a last physical batch, as far as this machine rounds rows differently."""
    for width in KINK_WIDTHS:
        model = Kink(width).to(device)
        inputs = kinks(model, others * rows_per_unit, rows_per_unit)
        if inputs is None:
            continue
        targets = torch.ones(2, len(inputs), dtype=torch.int64, device=device)
        targets[0, -rows_per_unit:] = 0
        # All together, and in two batches of a public size.
        for physical in (others + 1, others):
            yield Construction(
                what=f"kinks with {others} other(s), {width} inputs, batches of {physical}",
                model=model,
                # A power of two changes no rounding. The gradients must be longer than the clip.
                inputs=(inputs * 2.0 ** max(0, math.ceil(math.log2(max_grad_norm)))).expand(2, -1, -1).clone(),
                targets=targets,
                physical=physical,
                rows_per_unit=rows_per_unit,
            )
