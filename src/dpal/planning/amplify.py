"""Phase after phase, rates with which every group has spent the same ε: the core of step amplification."""

import math

import numpy as np
from numpy.typing import NDArray

from dpal.planning.certify import made_phase, spending, training_history
from dpal.planning.context import Context
from dpal.planning.phase import PhaseTask, solve_phase
from dpal.planning.plan import Phase, Schedule
from dpal.planning.rates import useful_orders
from dpal.planning.selections import PlannedSelection, passed_cost, taken_cost, threshold_cost
from dpal.privacy.groups import pure_epsilon
from dpal.privacy.pld import PldAccountant
from dpal.privacy.renyi import renyi_curve

Array = NDArray[np.float64]

# ε of a group ends between target · (1 − this) and target: in the last phase, and before it.
_LAST_TOLERANCE = 2e-4
_TOLERANCE = 2e-3


def amplified(
    context: Context, selections: tuple[PlannedSelection, ...], order: float, *, fixed_steps: bool
) -> Schedule:
    """The paper's Algorithms 2 and 3 with a rate of its own for every group in every phase.

    With fixed steps only the noise changes (its Appendix, "noise reduction").
    """
    setting = context.setting
    sizes = setting.group_sizes
    due = context.epsilon_by_phase()
    # Early ε may round to 0 for tiny budgets; what is due must grow all the same.
    due = np.maximum(due, setting.target_epsilon * 0.05 * np.arange(1, len(due) + 1) / len(due))
    orders = useful_orders(order)
    phases = (made_phase(context.steps[0], context.noise_multiplier, (context.rates[0],), sizes),)
    corrections = (context.renyi_ratio() - 1) * due[:1]
    for index in range(1, len(sizes)):
        last = index == len(sizes) - 1
        groups = index + 1
        certifier = setting.certifier
        if not last and isinstance(certifier, PldAccountant):
            certifier = PldAccountant(interval=8 * certifier.interval)

        def certify(
            candidate: Phase, before: tuple[Phase, ...] = phases, by: object = certifier, is_last: bool = last
        ) -> Array:
            schedule = Schedule(phases=(*before, candidate), selections=selections)
            spent = spending(setting, schedule, len(before) + 1, by)  # pyright: ignore[reportArgumentType]
            own = np.array(spent.groups)
            # Where the campaign costs more than its groups by themselves, all of them have to give.
            return own + max(0.0, spent.campaign - float(own.max())) if is_last else own

        task = PhaseTask(
            sizes=sizes[:groups],
            batch_size=setting.batch_size,
            noise_multiplier=context.noise_multiplier,
            targets=np.full(groups, due[index]),
            offsets=_offsets(context, selections, order, groups),
            spent_curves=_spent_curves(context, phases, selections, groups, orders),
            orders=orders,
            delta=setting.target_delta,
            fixed_steps=context.steps[index] if fixed_steps else None,
            certify=certify,
            tolerance=_LAST_TOLERANCE if last else _TOLERANCE,
        )
        corrections = np.append(corrections, corrections[-1])
        solved = solve_phase(task, corrections)
        phases = (*phases, solved.phase)
        corrections = solved.corrections
    return Schedule(phases=phases, selections=selections)


def _offsets(context: Context, selections: tuple[PlannedSelection, ...], order: float, groups: int) -> Array:
    """The part of each group's ε that its selections take, where it is not in the group's own curve."""
    setting = context.setting
    if setting.accounting == "renyi" or setting.selection in ("random", "none"):
        return np.zeros(groups)
    offsets = [0.0]
    before = 0.0
    for selection in selections[: groups - 1]:
        if setting.accounting == "branch" and selection.mechanism == "threshold":
            quantile = threshold_cost("branch", order)
            offsets.append(before + quantile + taken_cost(selection, order))
            before += quantile + passed_cost(selection, order)
        elif setting.accounting == "branch":
            before += float(renyi_curve([(kind, 1) for kind in selection.released().mechanisms()], (order,))[0])
            offsets.append(before)
        else:
            before += math.fsum(pure_epsilon(kind) for kind in selection.released().mechanisms())
            offsets.append(before)
    # Where the acquisition function reads training data, everyone has paid for every selection so far.
    return np.full(groups, before) if setting.acquisition_reads_training_data else np.array(offsets)


def _spent_curves(
    context: Context, phases: tuple[Phase, ...], selections: tuple[PlannedSelection, ...], groups: int, orders: Array
) -> Array:
    rows: list[Array] = []
    for group in range(groups):
        history = list(training_history(phases, group))
        if context.setting.accounting == "renyi":
            history += [(kind, 1) for selection in selections[:group] for kind in selection.released().mechanisms()]
        rows.append(renyi_curve(history, tuple(orders)))
    return np.array(rows)
