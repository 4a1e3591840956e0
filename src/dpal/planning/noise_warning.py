"""Says in words when the noise leaves a model too little to learn from, and which smallest changes would help.

It needs sizes and the number of parameters, and never reads a record.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from dpal.errors import DpalError, InvalidArgument
from dpal.planning.plan import Plan
from dpal.planning.request import PlanRequest
from dpal.planning.setting import Setting, equal_queries
from dpal.planning.signal import MOST_NOISE, noise_to_signal

# A larger ε promises almost nothing, so it is never proposed.
_LARGEST_EPSILON = 10.0
# A search ends when it is this close to the smallest value that helps.
_CLOSE = 1.04
# It looks for one that helps in steps of this factor.
_FURTHER = 1.5


def noise_warning(
    request: PlanRequest,
    pool_size: int,
    parameters: int,
    *,
    plan: Plan | None = None,
    encoder_parameters: int | None = None,
) -> str | None:
    """A paragraph with numbers where a model with so many trainable parameters has too little signal; None otherwise.

    `plan` saves making the request's plan again. `encoder_parameters` is the size of the head on a public encoder that
    could be used instead, if there is one. Changes are found by planning them, with Rényi accounting: it is fast and
    never needs less noise than a tighter accountant would.
    """
    plan = request.plan(pool_size) if plan is None else plan
    noise = noise_to_signal(plan.schedule, parameters)
    if noise[-1].so_far <= MOST_NOISE:
        return None
    phases = len(noise)
    in_all = "" if phases == 1 else f" of the {phases} phases"
    said = (
        f"Expect this model to learn little, and nothing if the task is hard: in a step of phase 1 the noise is "
        f"{times(noise[0].in_a_step)} the largest possible signal of its {parameters:,} trainable "
        f"parameters, and over all steps{in_all} {times(noise[-1].so_far)}. "
    )
    changes = list(_changes(replace(request, accountant="rdp"), plan.setting, parameters, encoder_parameters))
    if not changes:
        return f"{said}Neither fewer phases, nor labelling the whole pool, nor an ε of up to 10 would be enough."
    helps = "This change" if len(changes) == 1 else "Each of these changes"
    return f"{said}{helps} would be enough, with this much noise over all steps: {'; '.join(changes)}."


def times(ratio: float) -> str:
    """A ratio with two digits: "14 times", "1.3 times"."""
    return f"{float(f'{ratio:.2g}'):,g} times"


def _changes(request: PlanRequest, setting: Setting, parameters: int, encoder_parameters: int | None) -> Iterator[str]:
    """The changes in words, the most likely help first."""

    def noise_of(changed: PlanRequest, size: int = parameters) -> float:
        """Infinite where there is no such plan."""
        try:
            return noise_to_signal(changed.plan(setting.pool_size).schedule, size)[-1].so_far
        except DpalError:
            return float("inf")

    if encoder_parameters is not None:
        try:
            noise = noise_of(request.for_encoder(setting.pool_size), encoder_parameters)
        except InvalidArgument:
            noise = float("inf")
        if noise <= MOST_NOISE:
            yield f"a public encoder as the model, whose head has {encoder_parameters:,} parameters ({times(noise)})"
    planned = len(setting.group_sizes)
    for phases in range(planned - 1, 0, -1):
        if (noise := noise_of(_with_phases(request, setting, phases))) <= MOST_NOISE:
            yield f"{phases} phase{'' if phases == 1 else 's'} instead of {planned} ({times(noise)})"
            break
    labels = setting.labelling_budget
    more = _smallest(
        lambda total: noise_of(_with_labels(request, setting, int(total))), labels, setting.pool_size, whole=True
    )
    if more is not None:
        yield f"{int(more[0]):,} labels instead of {labels:,}, all groups larger in proportion ({times(more[1])})"
    epsilon = setting.target_epsilon
    larger = _smallest(lambda value: noise_of(_with_epsilon(request, setting, value)), epsilon, _LARGEST_EPSILON)
    if larger is not None:
        yield f"ε = {larger[0]:g} instead of {epsilon:g} ({times(larger[1])})"


def _smallest(
    noise_at: Callable[[float], float], now: float, most: float, *, whole: bool = False
) -> tuple[float, float] | None:
    """About the smallest value up to `most` with so little noise, rounded up to two digits, and the noise there."""
    low, high = now, now
    while high < most and noise_at(high) > MOST_NOISE:
        low, high = high, min(most, _FURTHER * high)
    if noise_at(high) > MOST_NOISE:
        return None
    while high / low > _CLOSE and not (whole and high - low <= 1):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if noise_at(middle) <= MOST_NOISE else (middle, high)
    value = min(most, _rounded_up(high))
    return value, noise_at(value)


def _rounded_up(value: float) -> float:
    """With two digits, at least the value."""
    rounded = float(f"{value:.1e}")
    return rounded if rounded >= value else float(f"{value * 1.05:.1e}")


def _with_phases(request: PlanRequest, setting: Setting, phases: int) -> PlanRequest:
    """As many labels, in fewer phases."""
    labels = setting.labelling_budget
    initial = labels if phases == 1 else setting.initial_size
    sizes = equal_queries(labels, initial, phases - 1)
    return replace(request, initial_size=initial, query_sizes=sizes, labelling_budget=None, phases=None)


def _with_labels(request: PlanRequest, setting: Setting, labels: int) -> PlanRequest:
    """All groups larger in proportion, and batches with them."""
    factor = labels / setting.labelling_budget
    sizes = tuple(round(factor * size) for size in setting.query_sizes)
    batch = request.batch_size
    return replace(
        request,
        initial_size=labels - sum(sizes),
        query_sizes=sizes,
        labelling_budget=None,
        phases=None,
        batch_size=None if batch is None else round(factor * batch),
    )


def _with_epsilon(request: PlanRequest, setting: Setting, epsilon: float) -> PlanRequest:
    """A larger ε; selection keeps its share where one is stated."""
    share = request.selection_epsilon
    kept = None if share is None else share * epsilon / setting.target_epsilon
    return replace(request, target_epsilon=epsilon, selection_epsilon=kept)
