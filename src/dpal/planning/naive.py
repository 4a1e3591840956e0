"""The naive plan, with one rate for everyone in each phase, and the plan without active learning.

In the naive plan the initial group binds; later ones leave budget unused.
"""

import math
from dataclasses import replace
from functools import cache

from dpal.errors import NoPlan
from dpal.planning.naive_phases import NaivePhases
from dpal.planning.plan import Phase, Proposal, Schedule
from dpal.planning.setting import Setting
from dpal.planning.spending import spending
from dpal.privacy.search import bracket, safe_crossing
from dpal.selection.selection import Selection


def naive(setting: Setting) -> Proposal:
    """The paper's Algorithm 1; the noise is raised where a later group, with its selections, would bind."""
    context = NaivePhases.of(setting)
    selections = setting.selections(context.decisive_order())

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


def _uniform(context: NaivePhases, selections: tuple[Selection, ...]) -> Schedule:
    sizes = context.setting.group_sizes
    phases = tuple(
        Phase.of(steps, context.noise_multiplier, (rate,) * (index + 1), sizes)
        for index, (rate, steps) in enumerate(zip(context.rates, context.steps, strict=True))
    )
    return Schedule(phases=phases, selections=selections)


def no_al(setting: Setting) -> Proposal:
    """No active learning: the whole labelling budget at once, chosen at random, with as many steps as the naive plan.

    The paper's baseline "Random".
    """
    everything = setting.labelling_budget
    at_once = replace(setting, initial_size=everything, query_sizes=(), selection="random", selection_epsilon=0.0)
    context = NaivePhases.of(at_once, steps=(sum(NaivePhases.naive_steps(setting)),))
    phase = Phase.of(context.steps[0], context.noise_multiplier, context.rates, (everything,))
    return Proposal(setting=setting, schedule=Schedule(phases=(phase,), selections=()))
