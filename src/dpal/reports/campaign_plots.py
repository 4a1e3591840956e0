"""Figures of campaigns: privacy spent, and how good the model became by labels and by ε."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from dpal.reports.figures import COLOURS, RC, line_style
from dpal.reports.plain_words import labels_axis

_NAMES = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "auc": "AUC"}


def learning_figure(reports: Mapping[str, Mapping[str, Any]], metric: str) -> Figure:
    """A metric by labels and by ε, one line per campaign."""
    with mpl.rc_context(rc=RC):
        figure = Figure(figsize=(8.2, 3.4), layout="constrained")
        by_labels, by_epsilon = figure.subplots(1, 2, sharey=True)
        for index, (name, report) in enumerate(reports.items()):
            measured = [measurement for measurement in report["metrics"] if metric in measurement]
            values = [measurement[metric] for measurement in measured]
            # By the phase's number: a phase that was given up has no measurement.
            labels = [report["labels_by_phase"][measurement["phase"] - 1] for measurement in measured]
            by_labels.plot(labels, values, label=name, **line_style(index))
            # Under renyi accounting the whole campaign's ε is stated for its end only.
            if report["plan"]["accounting"] != "renyi":
                spent = [_spent_by_phase(report["plan"])[measurement["phase"] - 1] for measurement in measured]
                by_epsilon.plot(spent, values, label=name, **line_style(index))
        by_labels.set_xlabel(labels_axis(report["labels_are_planned"] for report in reports.values()))
        by_epsilon.set_xlabel("ε spent so far")
        by_labels.set_ylabel(f"{_NAMES.get(metric, metric)} on the held-out set")
        by_labels.yaxis.set_major_formatter(PercentFormatter(1.0))
        for axes in (by_labels, by_epsilon):
            axes.margins(y=0.15)
        if len(reports) > 1:
            by_labels.legend(loc="lower right")
        return figure


def spending_figure(report: Mapping[str, Any]) -> Figure:
    """ε by phase and group against the budget; dotted where it is still planned."""
    plan = report["plan"]
    done = report["status"]["phases_done"] + len(report["status"]["phases_given_up"])
    with mpl.rc_context(rc=RC):
        figure = Figure(figsize=(8.2, 3.2), layout="constrained")
        spent, steps = figure.subplots(1, 2)
        phases = list(range(1, len(plan["phases"]) + 1))
        spent.axhline(plan["target_epsilon"], color="0.3", linestyle="--", linewidth=1.2, label="budget")
        for index, (label, values) in enumerate(_lines(plan)):
            spent.plot(phases, values, color=COLOURS[index % len(COLOURS)], linestyle=":", linewidth=1)
            spent.plot(phases[:done], values[:done], label=label, **line_style(index))
        spent.set_ylabel("ε spent so far")
        spent.set_ylim(0, 1.45 * plan["target_epsilon"])
        spent.legend(ncols=2, loc="upper left")
        _draw_steps(steps, plan, done)
        for axes in (spent, steps):
            axes.set_xlabel("training phase")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        return figure


def _lines(plan: Mapping[str, Any]) -> list[tuple[str, Sequence[float]]]:
    groups = [group["epsilon_by_phase"] for group in plan["groups"]]
    if plan["accounting"] == "branch" and len(groups) > 1:
        return [("initial set", groups[0]), ("everyone else", groups[-1])]
    if len(groups) > 6:
        return [("initial set", groups[0]), ("last query", groups[-1])]
    return [("initial set" if index == 0 else f"query {index}", values) for index, values in enumerate(groups)]


def _spent_by_phase(plan: Mapping[str, Any]) -> list[float]:
    columns = [*(group["epsilon_by_phase"] for group in plan["groups"]), plan["never_selected"]["epsilon_by_phase"]]
    return [max(values) for values in zip(*columns, strict=True)]


def _draw_steps(axes: Axes, plan: Mapping[str, Any], done: int) -> None:
    steps = [phase["steps"] for phase in plan["phases"]]
    colours = [COLOURS[0] if index < done else "0.8" for index in range(len(steps))]
    axes.bar(range(1, len(steps) + 1), steps, color=colours)
    axes.set_ylabel("steps (grey: to come)")
