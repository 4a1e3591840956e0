"""The planners by name, and how a setting becomes a certified plan, or a reason why there is none."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import TypeAlias

from dpal.errors import BudgetExceeded, DpalError, InvalidArgument, NoPlan, NoSolution
from dpal.imports import named
from dpal.planning.certification import certified
from dpal.planning.continual import continual
from dpal.planning.naive import naive, no_al
from dpal.planning.optimised import optimised
from dpal.planning.plan import Plan, Proposal
from dpal.planning.scouting import scouting
from dpal.planning.setting import Setting
from dpal.planning.step_amplification import noise_reduction, step_amplification
from dpal.privacy.rounding import rounded_up

Planner: TypeAlias = Callable[[Setting], Proposal]
PLANNERS: dict[str, Planner] = {
    "scouting": scouting,
    "step-amplification": step_amplification,
    "optimised": optimised,
    "noise-reduction": noise_reduction,
    "naive": naive,
    "continual": continual,
    "no-al": no_al,
}


# Slow planners, and those that stand for them in searches.
_QUICK: dict[Planner, Planner] = {optimised: step_amplification}


def planner_named(name: object) -> Planner:
    """A planner by its name or its import path."""
    return named("planner", name, PLANNERS)


def make_plan(setting: Setting, planner: str) -> Plan:
    """The certified plan of a planner for a setting, or `NoPlan` with what would help."""
    propose = planner_named(planner)
    try:
        proposal = propose(setting)
        _require_asked(planner, setting, proposal)
        plan = certified(planner, proposal)
    except NoSolution as error:
        raise NoPlan(f"There is no {planner} plan: {error}") from error
    except (NoPlan, BudgetExceeded) as error:
        raise NoPlan(f"There is no {planner} plan: {str(error).rstrip('.')}. {_advice(setting, planner)}") from error
    lowest = min(group.epsilon_by_phase[-1] for group in plan.groups)
    if plan.remark or not proposal.every_group_spends_all or lowest >= 0.995 * setting.target_epsilon:
        return plan
    return replace(
        plan,
        remark=f"The sizes do not let every group spend its budget: the lowest ends at ε {rounded_up(lowest, 4):.4f}.",
    )


def _require_asked(planner: str, asked: Setting, proposal: object) -> None:
    """A planner may choose the selections' ε and, where they are free, the query sizes, and nothing else."""
    if not isinstance(proposal, Proposal):
        raise InvalidArgument(f"what the planner {planner} returns", type(proposal).__name__, "a Proposal")
    proposed = replace(proposal.setting, selection_epsilon=asked.selection_epsilon)
    if asked.free_query_sizes and sum(proposed.query_sizes) == sum(asked.query_sizes):
        proposed = replace(proposed, query_sizes=asked.query_sizes)
    for option in fields(Setting):
        if getattr(proposed, option.name) != getattr(asked, option.name):
            changed, wanted = getattr(proposed, option.name), getattr(asked, option.name)
            raise InvalidArgument(f"{option.name} in the proposal of {planner}", changed, f"{wanted!r}, as requested")


def plans_of_all(setting: Setting) -> dict[str, Plan | str]:
    """Every planner's plan for the setting, or why there is none."""
    plans: dict[str, Plan | str] = {}
    for name in PLANNERS:
        try:
            plans[name] = make_plan(setting, name)
        except DpalError as error:
            plans[name] = str(error)
    return plans


def _advice(setting: Setting, planner: str) -> str:
    """The largest selection ε that works, if that is what stands in the way."""
    largest = _largest_selection_epsilon(setting, planner) if setting.selection_pays else 0.0
    if largest > 0:
        return (
            f"A selection ε of {setting.selection_epsilon:g} is too much here; the largest that works is {largest:.2g}."
        )
    return (
        f"A larger ε (now {setting.target_epsilon:g}), fewer epochs (now {setting.epochs:g}), fewer phases or a "
        "larger initial set would help."
    )


def _largest_selection_epsilon(setting: Setting, planner: str) -> float:
    # Rényi accounting, for speed; the answer is rounded down to two digits and tried by the real accountant.
    propose = planner_named(planner)
    quick = _QUICK.get(propose, propose)

    def works(epsilon: float, accountant: str) -> bool:
        trial = replace(setting, selection_epsilon=epsilon, accountant=accountant)
        try:
            certified(planner, quick(trial))
        except (NoPlan, NoSolution, BudgetExceeded, InvalidArgument):
            return False
        return True

    low, high = 0.0, setting.selection_epsilon
    for _ in range(7):
        middle = (low + high) / 2
        low, high = (middle, high) if works(middle, "rdp") else (low, middle)
    for shrunk in (low, 0.9 * low, 0.7 * low):
        rounded = float(f"{0.995 * shrunk:.2g}") if shrunk > 0 else 0.0
        if rounded > 0 and works(rounded, setting.accountant):
            return rounded
    return 0.0
