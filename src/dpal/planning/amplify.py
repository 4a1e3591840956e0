"""Phase after phase, rates with which every group has spent the same ε: the core of step amplification."""

import math

import numpy as np
from numpy.typing import NDArray

from dpal.planning.certify import Spending, made_phase, prepare_curves, spending, training_history
from dpal.planning.context import Context
from dpal.planning.phase import PhaseTask, solve_phase
from dpal.planning.plan import Phase, Schedule
from dpal.planning.rates import useful_orders
from dpal.planning.selections import PlannedSelection, passed_cost, taken_cost, threshold_cost
from dpal.privacy.campaign_history import pure_epsilon
from dpal.privacy.renyi import RdpAccountant, renyi_curve

Array = NDArray[np.float64]

# ε of a group ends between target · (1 − this) and target: in the last phase, and before it.
_LAST_TOLERANCE = 2e-4
_TOLERANCE = 4e-3


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
    # Fewer orders are faster and never below all of them; the last phase gets all.
    quick = RdpAccountant(orders=tuple(orders)) if setting.accountant == "rdp" else setting.searcher
    phases = (made_phase(context.steps[0], context.noise_multiplier, (context.rates[0],), sizes),)
    spent = due[:1]
    for index in range(1, len(sizes)):
        last = index == len(sizes) - 1
        groups = index + 1

        selected = _selection_costs(context, selections, order, groups)
        target = float(due[index])
        if setting.acquisition_reads_training_data:
            # What is due is for training alone; everyone pays for this selection on top of it.
            spent = spent + selected[-1] - selected[-2]
            target += float(selected[-1])

        def certify(
            candidate: Phase, before: tuple[Phase, ...] = phases, selected: Array = selected, is_last: bool = last
        ) -> Array:
            schedule = Schedule(phases=(*before, candidate), selections=selections)
            costs = spending(setting, schedule, len(before) + 1, setting.searcher if is_last else quick)
            if setting.accounting == "branch":
                return _levels(costs, selected)
            own = np.array(costs.groups)
            # Where the campaign costs more than its groups by themselves, all of them have to give.
            return own + max(0.0, costs.campaign - float(own.max())) if is_last else own

        task = PhaseTask(
            sizes=sizes[:groups],
            batch_size=setting.batch_size,
            noise_multiplier=context.noise_multiplier,
            targets=np.full(groups, target),
            spent=np.append(spent, selected[-1]),
            spent_curves=_spent_curves(context, phases, selections, groups, orders),
            orders=orders,
            delta=setting.target_delta,
            fixed_steps=context.steps[index] if fixed_steps else None,
            certify=certify,
            tolerance=_LAST_TOLERANCE if last else _TOLERANCE,
        )
        solved = solve_phase(task)
        phases, spent = (*phases, solved.phase), solved.spent
    return Schedule(phases=phases, selections=selections)


def _levels(costs: Spending, selected: Array) -> Array:
    """Each group's ε under branch accounting, told apart: records outside the initial group share one.

    Training and being selected, at the decisive order, put the groups in proportion; the worst stands for what all
    of them share.
    """
    trained = np.array(costs.trained)
    levels = trained + selected
    levels[1:] += costs.unselected - levels[1:].max()
    return np.maximum(levels, trained)


def _selection_costs(context: Context, selections: tuple[PlannedSelection, ...], order: float, groups: int) -> Array:
    """What selection costs each group before it trains: exactly for basic accounting, at the decisive order else."""
    setting = context.setting
    costs = [0.0]
    before = 0.0
    for selection in selections[: groups - 1]:
        mechanisms = selection.released().mechanisms()
        if setting.accounting == "basic":
            before += math.fsum(pure_epsilon(kind) for kind in mechanisms)
            costs.append(before)
        elif setting.accounting == "branch" and selection.mechanism == "threshold":
            quantile = threshold_cost("branch", order)
            costs.append(before + quantile + taken_cost(selection, order))
            before += quantile + passed_cost(selection, order)
        else:
            before += float(renyi_curve([(kind, 1) for kind in mechanisms], (order,))[0])
            costs.append(before)
    return np.array(costs)


def _spent_curves(
    context: Context, phases: tuple[Phase, ...], selections: tuple[PlannedSelection, ...], groups: int, orders: Array
) -> Array:
    prepare_curves(phases[-1], tuple(orders))
    rows: list[Array] = []
    for group in range(groups):
        history = list(training_history(phases, group))
        if context.setting.accounting == "renyi":
            history += [(kind, 1) for selection in selections[:group] for kind in selection.released().mechanisms()]
        rows.append(renyi_curve(history, tuple(orders)))
    return np.array(rows)
