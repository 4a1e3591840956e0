"""Several campaigns on one page: curves with bands, a table, and the same as Markdown, LaTeX and JSON."""

import json
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from dpal.campaign.files import write_text
from dpal.errors import InvalidArgument
from dpal.reports.comparison import (
    Run,
    Summary,
    as_json,
    last_labels,
    latex_table,
    markdown_table,
    metric_of,
    summaries,
)
from dpal.reports.figures import RC, as_svg, line_style
from dpal.reports.html_pages import inline_svg, render
from dpal.reports.plain_words import labels_axis, spaced

SIMULATION = (
    "Simulation only: some of these runs can be predicted from a seed, or select without privacy, and protect nobody."
)


def write_comparison(runs: Sequence[Run], path: Path, *, metric: str | None = None) -> Path:
    """Write the page, and next to it .md, .tex and .json."""
    if path.suffix.lower() != ".html":
        raise InvalidArgument("the comparison's file", str(path), "named with .html")
    if not runs:
        raise InvalidArgument("the campaigns to compare", [], "at least one")
    chosen = metric or metric_of(runs)
    compared = summaries(runs, chosen)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path.with_suffix(".md"), markdown_table(compared, chosen))
    write_text(path.with_suffix(".tex"), latex_table(compared, chosen))
    write_text(
        path.with_suffix(".json"), json.dumps(as_json(compared, runs, chosen), indent=2, ensure_ascii=False) + "\n"
    )
    write_text(path, _page(compared, chosen, path.stem))
    return path


def _page(compared: Sequence[Summary], metric: str, title: str) -> str:
    return render(
        "comparison.html",
        title=title,
        metric=metric,
        methods=[(method, last_labels(method)) for method in compared],
        simulation=None if all(method.is_private for method in compared) else SIMULATION,
        curves=inline_svg(as_svg(curves(compared, metric))),
    )


def curves(compared: Sequence[Summary], metric: str) -> Figure:
    """One line per method with a band of one standard deviation."""
    with mpl.rc_context(rc=RC):
        figure = Figure(figsize=(7.2, 4.0), layout="constrained")
        axes = figure.subplots()
        for index, method in enumerate(compared):
            style = line_style(index)
            axes.plot(method.labels, method.mean, label=f"{method.method} ({method.runs})", **style)
            spread = [deviation or 0.0 for deviation in method.deviation]
            low = [mean - extra for mean, extra in zip(method.mean, spread, strict=True)]
            high = [mean + extra for mean, extra in zip(method.mean, spread, strict=True)]
            axes.fill_between(method.labels, low, high, color=style["color"], alpha=0.15, linewidth=0)
        axes.set_xlabel(labels_axis(method.labels_are_planned for method in compared))
        axes.set_ylabel(f"{spaced(metric)} on the held-out set")
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        # Outside the axes, so that it covers no data however many methods there are.
        figure.legend(loc="outside lower center", ncols=2 if len(compared) > 2 else 1)
        if not all(method.is_private for method in compared):
            figure.suptitle(SIMULATION, color="red", fontsize=7)
        return figure
