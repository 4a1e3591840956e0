"""Several campaigns on one page: curves with bands, a table, and the same as Markdown, LaTeX and JSON."""

import json
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from dpal.campaign.files import write_text
from dpal.errors import InvalidArgument
from dpal.reports.campaign_plots import as_svg
from dpal.reports.comparison import Run, Summary, as_json, latex_table, markdown_table, summaries
from dpal.reports.page import document, escaped, section, table
from dpal.reports.style import COLOURS, MARKERS, RC

SIMULATION = "Simulation only: these runs can be predicted from a seed or select without privacy. They protect nobody."


def write_comparison(runs: Sequence[Run], path: Path, *, metric: str | None = None) -> Path:
    """Write the page, and beside it .md, .tex and .json."""
    if path.suffix.lower() != ".html":
        raise InvalidArgument("the comparison's file", str(path), "named with .html")
    if not runs:
        raise InvalidArgument("the campaigns to compare", [], "at least one")
    chosen = metric or next((name for run in runs for each in run.metrics for name in each), "accuracy")
    found = summaries(runs, chosen)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path.with_suffix(".md"), markdown_table(found, chosen))
    write_text(path.with_suffix(".tex"), latex_table(found, chosen))
    write_text(path.with_suffix(".json"), json.dumps(as_json(found, runs, chosen), indent=2, ensure_ascii=False) + "\n")
    write_text(path, _page(found, chosen, path.stem))
    return path


def _page(found: Sequence[Summary], metric: str, title: str) -> str:
    name = metric.replace("_", " ")
    rows = [
        [
            escaped(each.method),
            str(each.runs),
            f"{each.epsilon:g}",
            f"{each.labels[-1]:,.0f}",
            f"{each.mean[-1]:.2%}" + ("" if each.deviation[-1] is None else f" ± {each.deviation[-1]:.2%}"),
            "" if each.is_private else '<span class="no">simulation only</span>',
        ]
        for each in found
    ]
    words = f"{name} by labels, mean and standard deviation over runs"
    figure = f'<figure role="img" aria-label="{escaped(words)}">{as_svg(curves(found, metric))}</figure>'
    warning = "" if all(each.is_private for each in found) else f'<p class="warning">{SIMULATION}</p>'
    return document(
        title,
        [
            f"<h1>{escaped(title)}</h1>",
            warning,
            section("Curves", f"<p>{escaped(words)}.</p>", figure),
            section("At the end", table(["method", "runs", "ε", "labels", name, ""], rows)),
        ],
    )


def curves(found: Sequence[Summary], metric: str) -> Figure:
    """One line a method with a band of one standard deviation."""
    with mpl.rc_context(rc=RC):
        figure = Figure(figsize=(7.2, 4.0), layout="constrained")
        axes = figure.subplots()
        for index, each in enumerate(found):
            colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
            axes.plot(each.labels, each.mean, label=f"{each.method} ({each.runs})", color=colour, marker=marker)
            spread = [deviation or 0.0 for deviation in each.deviation]
            low = [mean - extra for mean, extra in zip(each.mean, spread, strict=True)]
            high = [mean + extra for mean, extra in zip(each.mean, spread, strict=True)]
            axes.fill_between(each.labels, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.set_xlabel("labels asked for")
        axes.set_ylabel(f"{metric.replace('_', ' ')} on the held-out set")
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        # Outside the axes, so that it covers no data however many methods there are.
        figure.legend(loc="outside lower center", ncols=2 if len(found) > 2 else 1)
        if not all(each.is_private for each in found):
            figure.suptitle(SIMULATION, color="red", fontsize=7)
        return figure
