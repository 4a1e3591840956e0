"""Several campaigns side by side: means and standard deviations over repeated runs, as data and as tables."""

import html
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpal.campaign.campaign import Campaign
from dpal.errors import InvalidArgument
from dpal.reports.campaign_data import labels_are_planned, labels_by_phase
from dpal.reports.plain_words import exactly, spaced


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One campaign's curve: labels asked for (planned, where the real number stays inside) and metrics by phase."""

    method: str
    folder: str
    labels: tuple[int, ...]
    labels_are_planned: bool
    metrics: tuple[dict[str, float], ...]
    epsilon: float
    delta: float
    is_private: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A method over all its runs: the mean after each phase, and the standard deviation (None for a single run)."""

    method: str
    runs: int
    labels: tuple[float, ...]
    # Of any run.
    labels_are_planned: bool
    mean: tuple[float, ...]
    deviation: tuple[float | None, ...]
    epsilon: float
    delta: float
    is_private: bool


def run_of(folder: Path | str, method: str | None = None) -> Run:
    """A campaign's curve. Nothing is verified here: for that, see the campaign's own report."""
    campaign = Campaign(folder)
    state, plan = campaign.state(), campaign.plan
    selection = f"{state.created.acquisition} by {plan.setting.selection}"
    if not plan.selections or plan.setting.selection == "random":
        selection = "random"
    return Run(
        method=method or f"{plan.planner}, {selection}",
        folder=str(folder),
        labels=tuple(labels_by_phase(state.asked, plan)[fact.phase] for fact in state.evaluated),
        labels_are_planned=labels_are_planned(plan),
        metrics=tuple(dict(fact.metrics) for fact in state.evaluated),
        epsilon=plan.setting.target_epsilon,
        delta=plan.setting.target_delta,
        is_private=state.created.seed is None and plan.selection_is_private,
    )


def metric_of(runs: Sequence[Run]) -> str:
    """The metric to compare where none was chosen: the first that a campaign has."""
    return next((name for run in runs for metrics in run.metrics for name in metrics), "accuracy")


def summaries(runs: Sequence[Run], metric: str) -> list[Summary]:
    """The runs of each method together, in the order in which the methods first appear."""
    compared: list[Summary] = []
    for method in dict.fromkeys(run.method for run in runs):
        own = [run for run in runs if run.method == method]
        curves = [[metrics[metric] for metrics in run.metrics if metric in metrics] for run in own]
        phases = min(len(curve) for curve in curves)
        if phases == 0:
            raise InvalidArgument(
                "a campaign to compare", own[0].folder, f"trained and evaluated: it has no {spaced(metric)}"
            )
        columns = [[curve[phase] for curve in curves] for phase in range(phases)]
        compared.append(
            Summary(
                method=method,
                runs=len(own),
                labels=tuple(statistics.fmean(run.labels[phase] for run in own) for phase in range(phases)),
                labels_are_planned=any(run.labels_are_planned for run in own),
                mean=tuple(statistics.fmean(values) for values in columns),
                deviation=tuple(statistics.stdev(values) if len(values) > 1 else None for values in columns),
                epsilon=max(run.epsilon for run in own),
                delta=max(run.delta for run in own),
                is_private=all(run.is_private for run in own),
            )
        )
    return compared


def as_json(compared: Sequence[Summary], runs: Sequence[Run], metric: str) -> dict[str, Any]:
    """Everything, for programs."""
    return {
        "metric": metric,
        "methods": [asdict(summary) for summary in compared],
        "runs": [asdict(run) for run in runs],
    }


def markdown_table(compared: Sequence[Summary], metric: str) -> str:
    """A table for documents in Markdown."""
    lines = [f"| method | runs | ε | labels | {spaced(metric)} (%) |", "| --- | ---: | ---: | ---: | ---: |"]
    for summary in compared:
        mean, spread = _end(summary)
        value = mean if spread is None else f"{mean} ± {spread}"
        name = html.escape(summary.method.replace("|", "/"), quote=False)
        epsilon, labels = exactly(summary.epsilon), last_labels(summary)
        lines.append(f"| {name} | {summary.runs} | {epsilon} | {labels} | {value} |")
    return "\n".join(lines) + "\n"


def latex_table(compared: Sequence[Summary], metric: str) -> str:
    """A table for papers, in the paper's own style."""
    head = f"Method & Runs & $\\varepsilon$ & Labels & {_escaped(spaced(metric).capitalize())} (\\%) \\\\"
    rows: list[str] = []
    for summary in compared:
        mean, spread = _end(summary)
        value = f"${mean}$" if spread is None else f"${mean}_{{\\pm {spread}}}$"
        epsilon, labels = exactly(summary.epsilon), last_labels(summary)
        cells = (_escaped(summary.method), str(summary.runs), epsilon, labels, value)
        rows.append(" & ".join(cells) + " \\\\")
    return "\n".join(
        ["\\begin{tabular}{lrrrr}", "\\toprule", head, "\\midrule", *rows, "\\bottomrule", "\\end{tabular}", ""]
    )


def last_labels(summary: Summary) -> str:
    """The number of labels at the end; planned where the real one stays inside."""
    return f"{summary.labels[-1]:,.0f}{' (planned)' if summary.labels_are_planned else ''}"


def _end(summary: Summary) -> tuple[str, str | None]:
    """Mean and standard deviation at the end, in percent."""
    spread = summary.deviation[-1]
    return f"{100 * summary.mean[-1]:.2f}", None if spread is None else f"{100 * spread:.2f}"


def _escaped(text: str) -> str:
    special: Mapping[str, str] = {
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
        "\\": "\\textbackslash{}",
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
    }
    return "".join(special.get(letter, letter) for letter in text)
