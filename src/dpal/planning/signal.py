"""How the noise of a plan's training compares with the largest signal that it could have, before any data is seen.

The signal is largest if the clipped gradients of all records have the full norm and point the same way, at every step:
the number of records in a batch, in units of the clip norm. The noise has a norm of noise multiplier · √parameters in
the same units. Over several steps signals add up, and independent noise grows with the root. So a phase has

    noise / signal in a step = noise multiplier · √parameters / batch,  in all its steps = the same / √steps

and over a whole plan it is √(parameters / Σ steps · (batch / noise multiplier)²): the sum is the planning objective
(`objective`) without weights for the choice of records. It does not know how hard the task is (docs/planning.md).
"""

import math
from dataclasses import dataclass

from dpal.errors import InvalidArgument
from dpal.planning.plan import Schedule
from dpal.privacy import checks

# Below it, measured models learned more than half of what is above chance; beyond it, most did not (docs/planning.md).
MOST_NOISE = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseToSignal:
    """Noise by the end of a phase, as a multiple of the largest possible signal."""

    # In one step of the phase, and in all steps of the plan up to its end.
    in_a_step: float
    so_far: float


def noise_to_signal(schedule: Schedule, parameters: int) -> tuple[NoiseToSignal, ...]:
    """One entry per phase, for a model with so many trainable parameters."""
    if checks.count("parameters", parameters) == 0:
        raise InvalidArgument("parameters", parameters, "at least 1: a model without them learns nothing")
    by_phase: list[NoiseToSignal] = []
    squared_signal = 0.0
    for phase in schedule.phases:
        step = phase.expected_batch_size / phase.noise_multiplier
        squared_signal += phase.steps * step**2
        by_phase.append(
            NoiseToSignal(in_a_step=math.sqrt(parameters) / step, so_far=math.sqrt(parameters / squared_signal))
        )
    return tuple(by_phase)
