"""Noise reduction: the naive steps, but less noise in later phases, so that every group spends its whole budget."""

from dpal.planning.amplify import amplified
from dpal.planning.context import Context
from dpal.planning.plan import Proposal
from dpal.planning.selections import planned_selections
from dpal.planning.setting import Setting


def noise_reduction(setting: Setting) -> Proposal:
    """The paper's alternative to step amplification (its Appendix, "Alternatives")."""
    context = Context.of(setting)
    order = context.decisive_order()
    schedule = amplified(context, planned_selections(setting, order), order, fixed_steps=True)
    return Proposal(setting=setting, schedule=schedule)
