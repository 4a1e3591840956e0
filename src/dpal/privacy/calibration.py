"""From a target ε to a noise multiplier, a sampling probability or a number of steps.

Every answer is the safe end of its search and was evaluated by the accountant that is to certify it.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache

from dpal.errors import NoSolution
from dpal.privacy import checks
from dpal.privacy.accountants import Accountant
from dpal.privacy.history import History, canonical
from dpal.privacy.mechanisms import Mechanism, PoissonSampledGaussian
from dpal.privacy.renyi import RdpAccountant
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
        return before + tuple(
            (PoissonSampledGaussian(sampling_probability=probability, noise_multiplier=noise_multiplier), steps)
            for probability, steps in checked_phases
        )

    if not any(probability > 0 and steps > 0 for probability, steps in checked_phases):
        raise NoSolution("Every phase has a sampling probability or a number of steps of 0: any noise will do.")
    _require_budget_left(before, target_epsilon, target_delta, accountant)

    def solve(solver: Accountant, start: float, stride: float) -> float:
        return _calibrated(
            lambda log_noise: solver.epsilon(with_noise(math.exp(log_noise)), target_delta) - target_epsilon,
            start=start,
            stride=stride,
            safest=_LARGEST_LOG_NOISE,
            boldest=_SMALLEST_LOG_NOISE,
            target_epsilon=target_epsilon,
        )

    # Rényi accounting is fifty times faster than loss distributions, and lands close by.
    log_noise = solve(RdpAccountant(), 1.0, 0.5)
    if not isinstance(accountant, RdpAccountant) or accountant != RdpAccountant():
        log_noise = solve(accountant, log_noise, 0.05)
    if log_noise <= _SMALLEST_LOG_NOISE:
        raise NoSolution(
            f"Even a noise multiplier of {math.exp(log_noise):g} ends within ε = {target_epsilon:g}: these phases "
            "cannot spend that much. Use a smaller target ε or more steps."
        )
    return math.exp(log_noise)


def _calibrated(
    gap: Callable[[float], float],
    *,
    start: float,
    stride: float,
    safest: float,
    boldest: float,
    target_epsilon: float,
) -> float:
    """The safe end of a search over the logarithm of a parameter."""
    evaluated_once = cache(gap)
    ends = bracket(evaluated_once, start=start, stride=stride, safest=safest, boldest=boldest)
    if ends is None:
        raise NoSolution(
            f"No value from {math.exp(min(start, safest)):g} to {math.exp(max(start, safest)):g} ends within "
            f"ε = {target_epsilon:g}. Use fewer steps or a larger target ε."
        )
    safe, unsafe = ends
    tolerance = _RELATIVE_TOLERANCE * target_epsilon
    return safe_crossing(evaluated_once, safe=safe, unsafe=unsafe, gap_tolerance=tolerance)


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
    noise_multiplier = checks.positive("noise_multiplier", noise_multiplier)
    steps = checks.count("steps", steps)
    before = canonical(history)

    _require_budget_left(before, target_epsilon, target_delta, accountant)

    def solve(solver: Accountant, start: float, stride: float) -> float:
        def gap(log_probability: float) -> float:
            probability = min(1.0, math.exp(log_probability))
            step = PoissonSampledGaussian(sampling_probability=probability, noise_multiplier=noise_multiplier)
            return solver.epsilon((*before, (step, steps)), target_delta) - target_epsilon

        return _calibrated(
            gap,
            start=start,
            stride=stride,
            safest=_SMALLEST_LOG_PROBABILITY,
            boldest=0.0,
            target_epsilon=target_epsilon,
        )

    start, stride = -1.0, -1.0
    if not isinstance(accountant, RdpAccountant) and RdpAccountant().epsilon(before, target_delta) < target_epsilon:
        start, stride = solve(RdpAccountant(), start, stride), -0.05
    return min(1.0, math.exp(solve(accountant, start, stride)))


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
            f"The history alone has ε = {spent:.6g}, more than the target of {target_epsilon:g}. "
            f"Use a target of at least {spent:.6g}."
        )
