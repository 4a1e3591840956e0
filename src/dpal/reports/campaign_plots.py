"""Figures of campaigns: privacy spent, how good the model became, and what it is good at."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from dpal.reports.figures import COLOURS, RC, honest_limits, line_style
from dpal.reports.plain_words import labels_axis

_MOST_BARS = 24
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
        reference = _reference(next(iter(reports.values())), metric)
        drawn = [
            measured[metric] for report in reports.values() for measured in report["metrics"] if metric in measured
        ]
        by_labels.set_ylim(honest_limits(drawn, None if reference is None else reference[1]))
        if reference is not None:
            for axes in (by_labels, by_epsilon):
                axes.axhline(reference[1], color="0.3", linestyle="--", linewidth=1.2, label=reference[0])
        if len(reports) > 1 or reference is not None:
            by_labels.legend(loc="best")
        return figure


def _reference(report: Mapping[str, Any], metric: str) -> tuple[str, float] | None:
    """What a model has to beat, by name: the most frequent class, or chance. None if it was not recorded."""
    held_out = report.get("held_out")
    if held_out is None:
        return None
    if metric == "accuracy" and held_out["majority"] is not None:
        # A dollar sign would start a formula.
        name = str(held_out["majority_class"]).replace("$", r"\$")
        return f"always '{name}': {held_out['majority']:.1%}", held_out["majority"]
    if metric in ("balanced_accuracy", "auc") and held_out["chance"] is not None:
        return f"chance: {held_out['chance']:.1%}", held_out["chance"]
    return None


def held_out_figure(held_out: Mapping[str, Any]) -> Figure:
    """Recall (or AUC) by class, and whether the model is right as often as it is sure: shares of the held-out set."""
    with mpl.rc_context(rc=RC):
        figure = Figure(figsize=(8.2, 3.4), layout="constrained")
        by_class, reliability = figure.subplots(1, 2)
        _draw_classes(by_class, held_out)
        _draw_reliability(reliability, held_out)
        return figure


def _draw_classes(axes: Axes, held_out: Mapping[str, Any]) -> None:
    measure = "auc" if held_out["several_labels"] else "recall"
    # The classes with the most records, at the top; more bars than this could not be told apart.
    shown = sorted(held_out["by_class"], key=lambda one: -one["records"])[:_MOST_BARS]
    places = list(range(len(shown)))
    axes.barh(places, [one[measure] or 0.0 for one in shown], color=COLOURS[0], height=0.7)
    names = [str(one["class"])[:24].replace("$", r"\$") for one in shown]
    axes.set_yticks(places, [f"{name} ({one['records']:,})" for name, one in zip(names, shown, strict=True)])
    axes.tick_params(axis="y", labelsize=6 if len(shown) > 12 else 8)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    if held_out["chance"] is not None:
        axes.axvline(held_out["chance"], color="0.3", linestyle="--", linewidth=1.2, label="chance")
        axes.legend(loc="best")
    of = "" if len(shown) == len(held_out["by_class"]) else f", the {len(shown)} largest of {len(held_out['by_class'])}"
    axes.set_xlabel(f"{'AUC' if measure == 'auc' else 'recall'} by class (held-out records){of}")


def _draw_reliability(axes: Axes, held_out: Mapping[str, Any]) -> None:
    bins, answers = held_out["calibration"], sum(one["answers"] for one in held_out["calibration"])
    axes.plot([0, 1], [0, 1], color="0.3", linestyle="--", linewidth=1.2, label="perfectly calibrated")
    axes.plot(
        [one["confidence"] for one in bins],
        [one["right"] / one["answers"] for one in bins],
        color=COLOURS[1],
        alpha=0.5,
    )
    axes.scatter(
        [one["confidence"] for one in bins],
        [one["right"] / one["answers"] for one in bins],
        # By area, so that few answers look like few.
        s=[8 + 160 * one["answers"] / answers for one in bins],
        color=COLOURS[1],
        label="this model (size: number of answers)",
    )
    several = held_out["several_labels"]
    axes.set_xlabel("probability of a class" if several else "confidence of the answer")
    axes.set_ylabel("share that has the class" if several else "share that is right")
    axes.set_xlim(0, 1.02)
    axes.set_ylim(0, 1.02)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0))
    axes.legend(loc="best")


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
