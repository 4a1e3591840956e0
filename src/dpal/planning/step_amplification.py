"""Step amplification: more steps at lower rates, so that every group spends its whole budget."""

from dpal.planning.amplify import amplified
from dpal.planning.context import Context
from dpal.planning.plan import Proposal
from dpal.planning.selections import planned_selections
from dpal.planning.setting import Setting


def step_amplification(setting: Setting) -> Proposal:
    """The paper's Algorithm 3 (Algorithm 2 where selection is free), each group's rate solved by itself."""
    context = Context.of(setting)
    order = context.decisive_order()
    schedule = amplified(context, planned_selections(setting, order), order, fixed_steps=False)
    return Proposal(setting=setting, schedule=schedule)
