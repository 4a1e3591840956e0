"""Several campaigns side by side: means and deviations over repeated runs, as data and as tables."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpal.campaign.campaign import Campaign
from dpal.errors import InvalidArgument
from dpal.reports.campaign_data import labels_by_phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One campaign's curve: labels asked for, and metrics, after each phase."""

    method: str
    folder: str
    labels: tuple[int, ...]
    metrics: tuple[dict[str, float], ...]
    epsilon: float
    delta: float
    is_private: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A method over all its runs: the mean after each phase, and the deviation (none of a single run)."""

    method: str
    runs: int
    labels: tuple[float, ...]
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
        labels=tuple(labels_by_phase(state.groups, plan)[each.phase] for each in state.evaluated),
        metrics=tuple(dict(each.metrics) for each in state.evaluated),
        epsilon=plan.setting.target_epsilon,
        delta=plan.setting.target_delta,
        is_private=state.created.seed is None and plan.selection_is_private,
    )


def summaries(runs: Sequence[Run], metric: str) -> list[Summary]:
    """The runs of each method together, in the order in which methods first come."""
    found: list[Summary] = []
    for method in dict.fromkeys(run.method for run in runs):
        own = [run for run in runs if run.method == method]
        curves = [[each[metric] for each in run.metrics if metric in each] for run in own]
        phases = min(len(curve) for curve in curves)
        if phases == 0:
            raise InvalidArgument(
                "a campaign to compare", own[0].folder, f"trained and evaluated: it has no {metric.replace('_', ' ')}"
            )
        columns = [[curve[phase] for curve in curves] for phase in range(phases)]
        found.append(
            Summary(
                method=method,
                runs=len(own),
                labels=tuple(statistics.fmean(run.labels[phase] for run in own) for phase in range(phases)),
                mean=tuple(statistics.fmean(values) for values in columns),
                deviation=tuple(statistics.stdev(values) if len(values) > 1 else None for values in columns),
                epsilon=max(run.epsilon for run in own),
                delta=max(run.delta for run in own),
                is_private=all(run.is_private for run in own),
            )
        )
    return found


def as_json(found: Sequence[Summary], runs: Sequence[Run], metric: str) -> dict[str, Any]:
    """Everything, for programs."""
    return {"metric": metric, "methods": [asdict(each) for each in found], "runs": [asdict(run) for run in runs]}


def markdown_table(found: Sequence[Summary], metric: str) -> str:
    """A table for documents in Markdown."""
    lines = [f"| method | runs | ε | labels | {metric.replace('_', ' ')} (%) |", "| --- | ---: | ---: | ---: | ---: |"]
    for each in found:
        mean, spread = _end(each)
        value = mean if spread is None else f"{mean} ± {spread}"
        name = each.method.replace("|", "/")
        lines.append(f"| {name} | {each.runs} | {each.epsilon:g} | {each.labels[-1]:,.0f} | {value} |")
    return "\n".join(lines) + "\n"


def latex_table(found: Sequence[Summary], metric: str) -> str:
    """A table for papers, in the paper's own style."""
    head = f"Method & Runs & $\\varepsilon$ & Labels & {_escaped(metric.replace('_', ' ').capitalize())} (\\%) \\\\"
    rows: list[str] = []
    for each in found:
        mean, spread = _end(each)
        value = f"${mean}$" if spread is None else f"${mean}_{{\\pm {spread}}}$"
        cells = (_escaped(each.method), str(each.runs), f"{each.epsilon:g}", f"{each.labels[-1]:,.0f}", value)
        rows.append(" & ".join(cells) + " \\\\")
    return "\n".join(
        ["\\begin{tabular}{lrrrr}", "\\toprule", head, "\\midrule", *rows, "\\bottomrule", "\\end{tabular}", ""]
    )


def _end(each: Summary) -> tuple[str, str | None]:
    """Mean and deviation at the end, in percent."""
    spread = each.deviation[-1]
    return f"{100 * each.mean[-1]:.2f}", None if spread is None else f"{100 * spread:.2f}"


def _escaped(text: str) -> str:
    special: Mapping[str, str] = {each: f"\\{each}" for each in "&%$#_{}"}
    return "".join(special.get(letter, letter) for letter in text)
