"""No active learning: the whole labelling budget at once, chosen at random. The paper's baseline "Random"."""

from dataclasses import replace

from dpal.planning.certify import made_phase
from dpal.planning.context import Context
from dpal.planning.plan import Proposal, Schedule
from dpal.planning.setting import Setting


def no_al(setting: Setting) -> Proposal:
    """One phase with as many steps as the naive plan has in all."""
    everything = setting.labelling_budget
    at_once = replace(setting, initial_size=everything, query_sizes=(), selection="random", selection_epsilon=0.0)
    context = Context.of(at_once, steps=(sum(Context.naive_steps(setting)),))
    phase = made_phase(context.steps[0], context.noise_multiplier, context.rates, (everything,))
    return Proposal(setting=setting, schedule=Schedule(phases=(phase,), selections=()))
