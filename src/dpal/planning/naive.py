"""The naive plan: one rate for everyone in each phase. The initial group binds; later ones leave budget unused."""

import math
from functools import cache

from dpal.errors import NoPlan
from dpal.planning.certify import made_phase, spending
from dpal.planning.context import Context
from dpal.planning.plan import Proposal, Schedule
from dpal.planning.selections import PlannedSelection, planned_selections
from dpal.planning.setting import Setting
from dpal.privacy.search import bracket, safe_crossing


def naive(setting: Setting) -> Proposal:
    """The paper's Algorithm 1; the noise is raised where a later group, with its selections, would bind."""
    context = Context.of(setting)
    selections = planned_selections(setting, context.decisive_order())

    @cache
    def gap(log_noise: float) -> float:
        schedule = _uniform(context.with_noise(math.exp(log_noise)), selections)
        spent = spending(setting, schedule, len(schedule.phases), setting.certifier)
        return max(*spent.groups, spent.unselected, spent.campaign) - setting.target_epsilon

    start = math.log(context.noise_multiplier)
    if gap(start) > 0:
        ends = bracket(gap, start=start, stride=0.02, safest=start + 5, boldest=start)
        if ends is None:
            raise NoPlan(
                f"No noise keeps ε at {setting.target_epsilon:g}: the selections alone spend more. "
                "Use a smaller selection ε."
            )
        start = safe_crossing(gap, safe=ends[0], unsafe=ends[1], gap_tolerance=1e-6 * setting.target_epsilon)
    schedule = _uniform(context.with_noise(math.exp(start)), selections)
    return Proposal(setting=setting, schedule=schedule)


def _uniform(context: Context, selections: tuple[PlannedSelection, ...]) -> Schedule:
    sizes = context.setting.group_sizes
    phases = tuple(
        made_phase(steps, context.noise_multiplier, (rate,) * (index + 1), sizes)
        for index, (rate, steps) in enumerate(zip(context.rates, context.steps, strict=True))
    )
    return Schedule(phases=phases, selections=selections)
