"""What a plan is good for, before any data is seen: the signal of its training steps over their noise.

docs/planning.md explains and motivates it. It is a yardstick between plans for one setting, not a forecast.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpal.planning.plan import Schedule
from dpal.planning.selections import PlannedSelection

Array = NDArray[np.float64]

# A record from the very top of a perfect model's ranking counts as much as this many random ones, less one.
SELECTION_VALUE = 3.0


def objective(schedule: Schedule, group_sizes: tuple[int, ...]) -> float:
    """Σ over phases of steps · (effective batch / noise multiplier)².

    A record's weight in the effective batch grows with the lift of the selection that took it, and with how far
    training had come by then.
    """
    progress = [phase.steps * (phase.expected_batch_size / phase.noise_multiplier) ** 2 for phase in schedule.phases]
    total = math.fsum(progress)
    weights = [1.0]
    for group, selection in enumerate(schedule.selections, start=1):
        before = math.fsum(
            part
            for part, phase in zip(progress, schedule.phases, strict=True)
            if len(phase.sampling_probabilities) <= group
        )
        weights.append(1.0 + SELECTION_VALUE * lift(selection) * math.sqrt(before / total))
    return math.fsum(
        phase.steps
        * (
            sum(
                rate * size * weight
                for rate, size, weight in zip(phase.sampling_probabilities, group_sizes, weights, strict=False)
            )
            / phase.noise_multiplier
        )
        ** 2
        for phase in schedule.phases
    )


def lift(selection: PlannedSelection) -> float:
    """How far the mean score of what is taken rises over the pool's, for uniform scores: 0 random, 1 the very top."""
    fraction = selection.query_size / selection.unlabelled
    match selection.mechanism:
        case "threshold":
            above = selection.parameter("fraction_above")
            high, low = selection.parameter("probability_high"), selection.parameter("probability_low")
            mean = (low * (1 - above) ** 2 / 2 + high * above * (1 - above / 2)) / (low * (1 - above) + high * above)
            return 2 * mean - 1
        case "laplace":
            return _noisy_lift(fraction, lambda x: _laplace_survival(x * selection.parameter("epsilon")))
        case "gaussian" | "sampled-gaussian":
            part = 1.0 if selection.mechanism == "gaussian" else selection.parameter("participation")
            noise = selection.parameter("noise_multiplier")
            return _noisy_lift(min(fraction / part, 1.0), lambda x: ndtr(-x / noise))
        case "exponential":
            weight = selection.parameter("weight_epsilon")
            return _noisy_lift(fraction, lambda x: -np.expm1(-np.exp(np.minimum(-x * weight, 700.0))))
        case "none":
            return 1 - fraction
        case _:
            return 0.0


def _laplace_survival(x: Array) -> Array:
    return np.where(x > 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)


def _noisy_lift(fraction: float, survival: Callable[[Array], Array]) -> float:
    scores = (np.arange(256) + 0.5) / 256
    low, high = -1e4, 1e4
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if survival(middle - scores).mean() > fraction else (low, middle)
    chances = survival(high - scores)
    return float(2 * (chances @ scores) / chances.sum() - 1)
