"""The optimiser: step amplification with its free choices made by an objective that needs no data."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from dpal.errors import DpalError
from dpal.planning.naive_phases import NaivePhases
from dpal.planning.objective import objective
from dpal.planning.plan import Proposal, Schedule
from dpal.planning.setting import Setting
from dpal.planning.step_amplification import amplified, step_amplification

# The search halves its strides this often after the first round.
_ROUNDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the optimiser may move, each as a logarithm or a share around the step-amplification plan at 0."""

    # All steps times exp(this): more steps at more noise, at most twice as many.
    log_steps: float = 0.0
    # Steps times (labelled so far / labelled in the end)^this: later phases rather than earlier ones.
    tilt: float = 0.0
    # The selection's ε times exp(this).
    log_selection: float = 0.0
    # Each query is exp(this) times the one before, where the sizes are free.
    log_query_ratio: float = 0.0


_LIMITS = {"log_steps": (-0.7, 0.7), "tilt": (-1.0, 1.0), "log_selection": (-2.5, 1.0), "log_query_ratio": (-1.5, 0.3)}


def optimised(setting: Setting) -> Proposal:
    """The best schedule found by the objective; never worse than step amplification, which is where it starts."""
    start = step_amplification(setting)
    start_value = objective(start.schedule, setting.group_sizes)
    # Rényi accounting ranks the candidates: it is twenty times faster. The winner is solved by the certifier.
    quick = replace(setting, accountant="rdp")
    names = ["log_steps", "tilt"]
    if setting.selection_pays:
        names.append("log_selection")
    if setting.free_query_sizes and len(setting.query_sizes) > 1:
        names.append("log_query_ratio")

    def value(choices: Choices) -> float:
        try:
            changed, schedule = _schedule(quick, choices)
        except DpalError:
            return -math.inf
        return objective(schedule, changed.group_sizes)

    best = _climb(value, names)
    try:
        changed, schedule = _schedule(setting, best)
        best_value = objective(schedule, changed.group_sizes)
    except DpalError:
        best_value = -math.inf
        changed, schedule = setting, start.schedule
    if best_value <= start_value:
        return replace(start, remark="Objective: step amplification is already the best found.")
    gain = best_value / start_value - 1
    return Proposal(
        setting=changed,
        schedule=schedule,
        remark=f"Objective: {100 * gain:.1f}% above step amplification ({best_value:.4g} against {start_value:.4g}).",
    )


def _climb(value: Callable[[Choices], float], names: list[str]) -> Choices:
    """Coordinate ascent with shrinking strides."""
    best, best_value = Choices(), value(Choices())
    stride = dict.fromkeys(names, 0.5)
    for _ in range(_ROUNDS):
        for name in names:
            for sign in (1, -1):
                while True:
                    low, high = _LIMITS[name]
                    place = min(max(getattr(best, name) + sign * stride[name], low), high)
                    candidate = replace(best, **{name: place})
                    found = value(candidate) if candidate != best else -math.inf
                    if found <= best_value:
                        break
                    best, best_value = candidate, found
            stride[name] /= 2
    return best


def _schedule(setting: Setting, choices: Choices) -> tuple[Setting, Schedule]:
    changed = replace(
        setting,
        selection_epsilon=setting.selection_epsilon * math.exp(choices.log_selection),
        query_sizes=_query_sizes(setting, choices.log_query_ratio),
    )
    last = changed.labelled_by_phase[-1]
    steps = tuple(
        max(1, round(count * math.exp(choices.log_steps) * (labelled / last) ** choices.tilt))
        for count, labelled in zip(NaivePhases.naive_steps(changed), changed.labelled_by_phase, strict=True)
    )
    return changed, amplified(NaivePhases.of(changed, steps), fixed_steps=False)


def _query_sizes(setting: Setting, log_ratio: float) -> tuple[int, ...]:
    if log_ratio == 0 or not setting.query_sizes:
        return setting.query_sizes
    weights = [math.exp(log_ratio * index) for index in range(len(setting.query_sizes))]
    total = sum(setting.query_sizes)
    sizes = [max(1, round(total * weight / sum(weights))) for weight in weights]
    sizes[0] += total - sum(sizes)
    return tuple(sizes)
