"""From a budget to a certified plan. It knows nothing of data, models or stores.

Read request (what a user asks), setting (with defaults filled in), plan, promises (in words), spending (what it costs),
certification; then the planners: naive, step_amplification, continual, optimised, scouting. `planners` names them.
`several_records` says what a plan costs someone with several records, `signal` and `noise_warning` whether a model can
learn anything from it.
"""

from dpal.planning.certification import load_plan, read_plan
from dpal.planning.naive import naive
from dpal.planning.noise_warning import noise_warning
from dpal.planning.plan import Group, Phase, Plan, Proposal, Schedule
from dpal.planning.planners import PLANNERS
from dpal.planning.request import PlanRequest, plan
from dpal.planning.setting import Setting
from dpal.planning.several_records import epsilon_of_several
from dpal.planning.signal import NoiseToSignal, noise_to_signal
from dpal.planning.step_amplification import step_amplification

__all__ = [
    "PLANNERS",
    "Group",
    "NoiseToSignal",
    "Phase",
    "Plan",
    "PlanRequest",
    "Proposal",
    "Schedule",
    "Setting",
    "epsilon_of_several",
    "load_plan",
    "naive",
    "noise_to_signal",
    "noise_warning",
    "plan",
    "read_plan",
    "step_amplification",
]
