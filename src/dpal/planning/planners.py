"""The planners by name, and how a setting becomes a certified plan, or a reason why there is none."""

from collections.abc import Callable
from dataclasses import replace

from dpal.errors import BudgetExceeded, DpalError, InvalidArgument, NoPlan, NoSolution
from dpal.planning.certify import certified
from dpal.planning.continual import continual
from dpal.planning.naive import naive
from dpal.planning.no_al import no_al
from dpal.planning.noise_reduction import noise_reduction
from dpal.planning.optimised import optimised
from dpal.planning.plan import Plan, Proposal
from dpal.planning.setting import Setting
from dpal.planning.step_amplification import step_amplification
from dpal.privacy.rounding import rounded_up

PLANNERS: dict[str, Callable[[Setting], Proposal]] = {
    "step-amplification": step_amplification,
    "optimised": optimised,
    "noise-reduction": noise_reduction,
    "naive": naive,
    "continual": continual,
    "no-al": no_al,
}


def make_plan(setting: Setting, planner: str = "step-amplification") -> Plan:
    """The certified plan of a planner for a setting, or `NoPlan` with what would help."""
    if planner not in PLANNERS:
        raise InvalidArgument("planner", planner, f"one of {', '.join(PLANNERS)}")
    try:
        plan = certified(planner, PLANNERS[planner](setting))
    except NoSolution as error:
        raise NoPlan(f"There is no {planner} plan: {error}") from error
    except (NoPlan, BudgetExceeded) as error:
        raise NoPlan(f"There is no {planner} plan: {str(error).rstrip('.')}. {_advice(setting, planner)}") from error
    return _with_remark(plan)


def _with_remark(plan: Plan) -> Plan:
    """The plan, saying so where groups that were to spend everything could not."""
    lowest = min(group.epsilon_by_phase[-1] for group in plan.groups)
    if plan.remark or plan.planner != "step-amplification" or lowest >= 0.995 * plan.setting.target_epsilon:
        return plan
    return replace(
        plan,
        remark=f"The sizes do not let every group spend its budget: the lowest ends at ε {rounded_up(lowest, 4):.4f}.",
    )


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
    pays = setting.selection_epsilon > 0 and setting.selection not in ("random", "none") and planner != "no-al"
    largest = _largest_selection_epsilon(setting, planner) if pays else 0.0
    if largest > 0:
        return (
            f"A selection ε of {setting.selection_epsilon:g} is too much here; the largest that works is {largest:.2g}."
        )
    return (
        f"A larger ε than {setting.target_epsilon:g}, fewer epochs than {setting.epochs:g}, fewer phases or a larger "
        "initial set would help."
    )


def _largest_selection_epsilon(setting: Setting, planner: str) -> float:
    # Rényi accounting, for speed; the answer is rounded down to two digits and tried by the real accountant.
    quick = PLANNERS["step-amplification" if planner == "optimised" else planner]

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
