"""Step amplification: more steps at lower rates, so that every group spends its whole budget; and noise reduction."""

import numpy as np
from numpy.typing import NDArray

from dpal.planning.naive_phases import NaivePhases
from dpal.planning.phase_solver import PhaseTask, SolvedPhase, solve_phase
from dpal.planning.plan import Phase, Proposal, Schedule
from dpal.planning.rate_tables import useful_orders
from dpal.planning.setting import Setting
from dpal.planning.spending import Progress, Spending
from dpal.privacy.renyi import renyi_curve
from dpal.selection.selection import Selection

Array = NDArray[np.float64]

# ε of a group ends between target · (1 − this) and target: in the last phase, and before it.
_LAST_TOLERANCE = 2e-4
_TOLERANCE = 4e-3


def step_amplification(setting: Setting) -> Proposal:
    """The paper's Algorithm 3 (Algorithm 2 where selection is free), each group's rate solved separately."""
    schedule = amplified(NaivePhases.of(setting), fixed_steps=False)
    return Proposal(setting=setting, schedule=schedule, every_group_spends_all=True)


def noise_reduction(setting: Setting) -> Proposal:
    """The paper's alternative (its Appendix, "Alternatives"): the naive steps, but less noise in later phases."""
    return Proposal(setting=setting, schedule=amplified(NaivePhases.of(setting), fixed_steps=True))


def amplified(context: NaivePhases, *, fixed_steps: bool) -> Schedule:
    """The paper's Algorithms 2 and 3 with a rate of its own for every group in every phase.

    With fixed steps only the noise changes (its Appendix, "noise reduction").
    """
    setting = context.setting
    selections = setting.selections(context.decisive_order())
    due = context.epsilon_by_phase()
    # Early ε may round to 0 for tiny budgets; what is due must grow all the same.
    due = np.maximum(due, setting.target_epsilon * 0.05 * np.arange(1, len(due) + 1) / len(due))
    phases = (Phase.of(context.steps[0], context.noise_multiplier, (context.rates[0],), setting.group_sizes),)
    progress = Progress.of(setting, phases, selections)
    spent = due[:1]
    for index in range(1, len(setting.group_sizes)):
        steps = context.steps[index] if fixed_steps else None
        solved = next_phase(context, progress, selections, spent=spent, target=float(due[index]), fixed_steps=steps)
        phases, spent, progress = (*phases, solved.phase), solved.spent, progress.then(solved.phase)
    return Schedule(phases=phases, selections=selections)


def next_phase(
    context: NaivePhases,
    progress: Progress,
    selections: tuple[Selection, ...],
    *,
    spent: Array,
    target: float,
    fixed_steps: int | None,
) -> SolvedPhase:
    """The phase that follows, with one group more, at whose end every group has spent the target."""
    setting = context.setting
    sizes = setting.group_sizes
    groups = len(progress.groups) + 1
    last = groups == len(sizes)
    order = context.decisive_order()
    orders = useful_orders(order)
    # Fewer orders are faster and never below all of them; the last phase gets all.
    searcher = setting.searcher if last else setting.searcher.at_orders(tuple(orders))
    selected = _selection_costs(context, selections, order, groups)
    before = progress.with_groups(groups)

    def certify(candidate: Phase) -> Array:
        costs = before.then(candidate).spending(searcher)
        if setting.accounting == "branch":
            return _levels(costs, selected)
        own = np.array(costs.groups)
        # Where the campaign costs more than its groups by themselves, all of them have to give.
        return own + max(0.0, costs.campaign - float(own.max())) if last else own

    task = PhaseTask(
        sizes=sizes[:groups],
        batch_size=setting.batch_size,
        noise_multiplier=context.noise_multiplier,
        targets=np.full(groups, target),
        spent=np.append(spent, selected[-1]),
        spent_curves=_spent_curves(before, orders),
        orders=orders,
        delta=setting.target_delta,
        fixed_steps=fixed_steps,
        certify=certify,
        tolerance=_LAST_TOLERANCE if last else _TOLERANCE,
    )
    return solve_phase(task)


def _levels(costs: Spending, selected: Array) -> Array:
    """Each group's ε under branch accounting, told apart: records outside the initial group share one.

    Training and being selected, at the decisive order, put the groups in proportion; the worst stands for what all
    of them share.
    """
    trained = np.array(costs.trained)
    levels = trained + selected
    levels[1:] += costs.unselected - levels[1:].max()
    return np.maximum(levels, trained)


def _selection_costs(context: NaivePhases, selections: tuple[Selection, ...], order: float, groups: int) -> Array:
    """What selection costs each group before it trains: exact for basic accounting, else at the decisive order."""
    # Under basic accounting there is no mean.
    before = float(renyi_curve(context.setting.before, (order,))[0])
    costs = [0.0]
    for selection in selections[: groups - 1]:
        everyone, taken, passed = selection.costs(context.setting.accounting, order)
        costs.append(before + everyone + taken)
        before += everyone + passed
    return np.array(costs)


def _spent_curves(before: Progress, orders: Array) -> Array:
    # All groups at once is much faster than group by group.
    renyi_curve([(step, 1) for step in before.steps], tuple(orders))
    return np.array([renyi_curve(group.with_selections, tuple(orders)) for group in before.groups])
