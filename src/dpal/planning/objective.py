"""What a plan is good for, before any data is seen: the signal of its training steps over their noise.

docs/planning.md explains and motivates it. It compares plans for one setting; it does not predict accuracy.
"""

import math

from dpal.planning.plan import Schedule

# A record from the very top of a perfect model's ranking counts as much as this many random ones, less one. Of the
# values tried, this one ranks measured plans well (docs/planning.md).
SELECTION_VALUE = 1.0


def objective(schedule: Schedule, group_sizes: tuple[int, ...]) -> float:
    """Σ over phases of steps · (effective batch / noise multiplier)².

    A record's weight in the effective batch grows with the lift of the selection that took it, and with how far
    training had come by then. Only the records that a selection is expected to ask for count.
    """
    sizes = (group_sizes[0], *(selection.expected_number for selection in schedule.selections))
    progress = [phase.steps * (phase.expected_batch_size / phase.noise_multiplier) ** 2 for phase in schedule.phases]
    total = math.fsum(progress)
    weights = [1.0]
    for group, selection in enumerate(schedule.selections, start=1):
        before = math.fsum(
            part
            for part, phase in zip(progress, schedule.phases, strict=True)
            if len(phase.sampling_probabilities) <= group
        )
        weights.append(1.0 + SELECTION_VALUE * selection.lift() * math.sqrt(before / total))
    return math.fsum(
        phase.steps
        * (
            sum(
                rate * size * weight
                for rate, size, weight in zip(phase.sampling_probabilities, sizes, weights, strict=False)
            )
            / phase.noise_multiplier
        )
        ** 2
        for phase in schedule.phases
    )
