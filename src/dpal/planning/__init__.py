"""From a budget to a certified plan. It knows nothing of data, models or stores.

Read request (what a user asks), setting (with defaults filled in), plan, promises (in words), spending (what it costs),
certification; then the planners: naive, step_amplification, continual, optimised, scouting. `planners` names them.
"""

from dpal.planning.certification import load_plan, read_plan
from dpal.planning.naive import naive
from dpal.planning.plan import Group, Phase, Plan, Proposal, Schedule
from dpal.planning.planners import PLANNERS
from dpal.planning.request import PlanRequest, plan
from dpal.planning.setting import Setting
from dpal.planning.step_amplification import step_amplification

__all__ = [
    "PLANNERS",
    "Group",
    "Phase",
    "Plan",
    "PlanRequest",
    "Proposal",
    "Schedule",
    "Setting",
    "load_plan",
    "naive",
    "plan",
    "read_plan",
    "step_amplification",
]
