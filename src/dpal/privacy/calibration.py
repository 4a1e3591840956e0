"""From a target ε to a noise multiplier, a sampling probability or a number of steps.

Every answer is the safe end of its search and was evaluated by the accountant that is to certify it.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache, partial

from dpal.errors import NoSolution
from dpal.privacy import checks
from dpal.privacy.accountants import Accountant
from dpal.privacy.history import History, canonical
from dpal.privacy.mechanisms import Mechanism, PoissonSampledGaussian
from dpal.privacy.rounding import rounded_up
from dpal.privacy.search import bracket, most_that_fits, safe_crossing

# ε ends between target · (1 − this) and target.
_RELATIVE_TOLERANCE = 1e-7
_LARGEST_LOG_NOISE = math.log(1e7)
_SMALLEST_LOG_NOISE = math.log(1e-3)
_SMALLEST_LOG_PROBABILITY = math.log(1e-12)
_MOST_STEPS = 10**9


def noise_multiplier_for(
    *,
    target_epsilon: float,
    target_delta: float,
    phases: Sequence[tuple[float, int]],
    accountant: Accountant,
    history: History = (),
) -> float:
    """The smallest common noise multiplier for phases of (sampling probability, steps), after a history."""
    target_epsilon = checks.positive("target_epsilon", target_epsilon)
    target_delta = checks.open_probability("target_delta", target_delta)
    before = canonical(history)
    checked_phases = [
        (checks.probability("sampling_probability", probability), checks.count("steps", steps))
        for probability, steps in phases
    ]

    def with_noise(noise_multiplier: float) -> History:
        return [
            *before,
            *(
                (PoissonSampledGaussian(sampling_probability=probability, noise_multiplier=noise_multiplier), steps)
                for probability, steps in checked_phases
            ),
        ]

    if not any(probability > 0 and steps > 0 for probability, steps in checked_phases):
        raise NoSolution(
            "Every phase has a sampling probability or a number of steps of 0: there is nothing to add noise to."
        )
    _require_budget_left(before, target_epsilon, target_delta, accountant)

    log_noise = _calibrated(
        lambda by, log_noise: by.epsilon(with_noise(math.exp(log_noise)), target_delta) - target_epsilon,
        accountant=accountant,
        start=1.0,
        stride=0.5,
        safest=_LARGEST_LOG_NOISE,
        boldest=_SMALLEST_LOG_NOISE,
        target_epsilon=target_epsilon,
    )
    if log_noise <= _SMALLEST_LOG_NOISE:
        raise NoSolution(
            f"Even a noise multiplier of {math.exp(log_noise):g} ends within ε = {target_epsilon:g}: these phases "
            "cannot spend that much. Use a smaller target ε or more steps."
        )
    return math.exp(log_noise)


def sampling_probability_for(
    *,
    target_epsilon: float,
    target_delta: float,
    noise_multiplier: float,
    steps: int,
    accountant: Accountant,
    history: History = (),
) -> float:
    """The largest sampling probability with which the steps may follow the history."""
    target_epsilon = checks.positive("target_epsilon", target_epsilon)
    target_delta = checks.open_probability("target_delta", target_delta)
    noise_multiplier = checks.noise("noise_multiplier", noise_multiplier)
    steps = checks.count("steps", steps)
    before = canonical(history)
    _require_budget_left(before, target_epsilon, target_delta, accountant)

    def gap(by: Accountant, log_probability: float) -> float:
        probability = min(1.0, math.exp(log_probability))
        step = PoissonSampledGaussian(sampling_probability=probability, noise_multiplier=noise_multiplier)
        return by.epsilon((*before, (step, steps)), target_delta) - target_epsilon

    log_probability = _calibrated(
        gap,
        accountant=accountant,
        start=-1.0,
        stride=-1.0,
        safest=_SMALLEST_LOG_PROBABILITY,
        boldest=0.0,
        target_epsilon=target_epsilon,
    )
    return min(1.0, math.exp(log_probability))


def _calibrated(
    gap: Callable[[Accountant, float], float],
    *,
    accountant: Accountant,
    start: float,
    stride: float,
    safest: float,
    boldest: float,
    target_epsilon: float,
) -> float:
    """The safe end of a search over the logarithm of a parameter, by the accountant itself in the end.

    Faster accountants go first: they say where to start, and nothing else.
    """
    for hint, next_stride in accountant.hints():
        found = _search(partial(gap, hint), start, stride, safest, boldest, target_epsilon)
        if found is not None:
            start, stride = found, math.copysign(next_stride, stride)
    answer = _search(partial(gap, accountant), start, stride, safest, boldest, target_epsilon)
    if answer is None:
        raise NoSolution(
            f"Even {math.exp(safest):g} leaves ε above {target_epsilon:g}. Use fewer steps or a larger target ε."
        )
    return answer


def _search(
    gap: Callable[[float], float], start: float, stride: float, safest: float, boldest: float, target_epsilon: float
) -> float | None:
    evaluated_once = cache(gap)
    ends = bracket(evaluated_once, start=start, stride=stride, safest=safest, boldest=boldest)
    if ends is None:
        return None
    tolerance = _RELATIVE_TOLERANCE * target_epsilon
    return safe_crossing(evaluated_once, safe=ends[0], unsafe=ends[1], gap_tolerance=tolerance)


def steps_for(
    *,
    target_epsilon: float,
    target_delta: float,
    mechanism: Mechanism,
    accountant: Accountant,
    history: History = (),
) -> int:
    """The largest number of times the mechanism may run after the history; 0 where it may not run at all."""
    target_epsilon = checks.positive("target_epsilon", target_epsilon)
    target_delta = checks.open_probability("target_delta", target_delta)
    before = canonical(history)
    _require_budget_left(before, target_epsilon, target_delta, accountant)

    def fits(steps: int) -> bool:
        return accountant.epsilon((*before, (mechanism, steps)), target_delta) <= target_epsilon

    steps = most_that_fits(fits, limit=_MOST_STEPS)
    if steps == _MOST_STEPS:
        raise NoSolution(f"{steps} steps still end within ε = {target_epsilon:g}: there is no useful limit.")
    return steps


def _require_budget_left(before: History, target_epsilon: float, target_delta: float, accountant: Accountant) -> None:
    spent = accountant.epsilon(before, target_delta)
    if spent > target_epsilon:
        raise NoSolution(
            f"The history alone has ε = {rounded_up(spent, 6):.6f}, more than the target of {target_epsilon:g}. "
            f"Use a target of at least {rounded_up(spent, 6):.6f}."
        )
