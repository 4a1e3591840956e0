"""A plan as a figure: ε by phase and group, sampling probabilities, and steps (the paper's Figures 2 to 4)."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dpal.errors import InvalidArgument
from dpal.planning.naive_phases import NaivePhases
from dpal.planning.plan import Plan
from dpal.planning.promises import WORDS
from dpal.reports.figures import COLOURS, RC, line_style
from dpal.reports.plain_words import exactly
from dpal.reports.plan_table import NOT_PRIVATE

# With more groups than this the legend would hide the lines, so it names only the first and the last.
_NAMED_GROUPS = 7


def plot_plan(plan: Plan, path: Path) -> None:
    """Draw the plan to a file; its suffix decides the format."""
    suffixes = (".pdf", ".png", ".svg")
    if path.suffix.lower() not in suffixes:
        raise InvalidArgument("the plot's file", str(path), f"named with one of {', '.join(suffixes)}")
    with mpl.rc_context(rc=RC):
        figure = Figure(figsize=(11.5, 3.7), layout="constrained")
        spent, rates, steps = figure.subplots(1, 3)
        _draw_spending(spent, plan)
        _draw_rates(rates, plan)
        _draw_steps(steps, plan)
        for axes in (spent, rates, steps):
            axes.set_xlabel("training phase")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
            axes.set_xlim(0.8, len(plan.phases) + 0.2)
        figure.suptitle(
            f"{plan.planner}, ε = {exactly(plan.setting.target_epsilon)}, δ = {exactly(plan.setting.target_delta)} "
            f"({plan.setting.accountant}, {plan.setting.accounting} accounting){_promise(plan)}",
            fontsize=10,
        )
        if not plan.selection_is_private:
            figure.supxlabel(NOT_PRIVATE, color="red", fontsize=8)
        figure.savefig(path)


def _promise(plan: Plan) -> str:
    return f"\n{WORDS[plan.setting.promise].short}" if plan.selection_is_private else ""


def _draw_spending(axes: Axes, plan: Plan) -> None:
    phases = range(1, len(plan.phases) + 1)
    axes.axhline(plan.setting.target_epsilon, color="0.3", linestyle="--", linewidth=1.2, label="budget")
    lines = [(f"group {number}", group.epsilon_by_phase) for number, group in enumerate(plan.groups, start=1)]
    if plan.setting.accounting == "branch" and len(lines) > 1:
        # Under branch accounting all records outside the initial group share one ε.
        lines = [lines[0], ("groups 2 and later", plan.groups[-1].epsilon_by_phase)]
    for index, (label, values) in enumerate(lines):
        axes.plot(phases, values, label=_label(label, index, len(lines)), **_look(index, len(lines)))
    if plan.setting.accounting != "branch" and plan.setting.pool_size > plan.setting.labelling_budget:
        axes.plot(phases, plan.never_selected_epsilon_by_phase, color="0.5", linestyle=":", label="never selected")
    axes.set_ylabel("ε spent so far")
    axes.set_ylim(0, 1.4 * plan.setting.target_epsilon)
    axes.legend(ncols=3, loc="upper left", columnspacing=1.0, handlelength=1.6)
    axes.set_title("Privacy spent")


def _draw_rates(axes: Axes, plan: Plan) -> None:
    groups = len(plan.groups)
    for group in range(groups):
        points = [
            (number, phase.sampling_probabilities[group])
            for number, phase in enumerate(plan.phases, start=1)
            if group < len(phase.sampling_probabilities)
        ]
        axes.plot(*zip(*points, strict=True), label=_label(f"group {group + 1}", group, groups), **_look(group, groups))
    naive = NaivePhases.naive_rates(plan.setting)
    highest = max(max(phase.sampling_probabilities) for phase in plan.phases)
    if len(naive) == len(plan.phases) and plan.planner != "naive":
        axes.plot(range(1, len(naive) + 1), naive, color="0.5", linestyle=":", label="naive")
        highest = max(highest, *naive)
    axes.set_ylabel("sampling probability")
    axes.set_ylim(0, 1.35 * highest)
    axes.legend(ncols=3, loc="upper left", columnspacing=1.0, handlelength=1.6)
    axes.set_title("Sampling")


def _draw_steps(axes: Axes, plan: Plan) -> None:
    phases = range(1, len(plan.phases) + 1)
    steps = [phase.steps for phase in plan.phases]
    axes.plot(phases, steps, color=COLOURS[0], marker="o", label=plan.planner)
    naive = NaivePhases.naive_steps(plan.setting)
    if len(naive) == len(plan.phases) and plan.planner != "naive":
        axes.plot(phases, naive, color="0.5", linestyle=":", marker="^", label="naive")
    axes.set_ylabel("steps")
    axes.set_ylim(0, 1.25 * max(*steps, *naive))
    axes.legend(loc="upper left")
    axes.set_title("Training steps")


def _label(text: str, index: int, count: int) -> str | None:
    named = count <= _NAMED_GROUPS or index in (0, count - 1)
    return text if named else None


def _look(index: int, count: int) -> dict[str, Any]:
    if count <= _NAMED_GROUPS:
        return line_style(index)
    # Many groups: one colour map from old to new.
    return {"color": mpl.colormaps["viridis"](0.9 * index / (count - 1)), "linewidth": 1.0}
