"""Commands for researchers: campaigns side by side, and the scores of simulated ones."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from dpal.cli.app import Force, app, require_free


@app.command()
def compare(
    campaigns: Annotated[
        list[str],
        typer.Argument(help="Folders, or NAME=FOLDER to say what a run is called.", metavar="[NAME=]CAMPAIGN..."),
    ],
    to: Annotated[Path, typer.Option(help="The page to write (.html); .md, .tex and .json go next to it.")],
    metric: Annotated[str | None, typer.Option(help="accuracy, balanced_accuracy or auc.")] = None,
    force: Force = False,
) -> None:
    """Compare campaigns: curves with bands over repeated runs, and tables for documents and papers.

    Runs with the same name are repetitions of one method. Without names, so are runs with the same planner and
    selection.

    Example: dpal compare random=a random=b ours=c ours=d --to comparison.html
    """
    from dpal.reports.comparison import markdown_table, metric_of, run_of, summaries
    from dpal.reports.comparison_report import write_comparison

    to.parent.mkdir(parents=True, exist_ok=True)
    require_free(*(to.with_suffix(suffix) for suffix in (".html", ".md", ".tex", ".json")), force=force)
    named = [campaign.partition("=") for campaign in campaigns]
    runs = [run_of(folder, name) if equals else run_of(name) for name, equals, folder in named]
    path = write_comparison(runs, to, metric=metric)
    chosen = metric or metric_of(runs)
    console = Console(highlight=False, markup=False)
    console.print(markdown_table(summaries(runs, chosen), chosen))
    console.print(f"written to {path}")


@app.command()
def histogram(
    campaign: Annotated[Path, typer.Argument(help="A simulated campaign's folder.", metavar="CAMPAIGN")],
    to: Annotated[Path, typer.Option(help="The figure to write (png, pdf or svg).", metavar="FILE")],
    force: Force = False,
) -> None:
    """Draw the scores of all records and of the selected ones, query by query. Simulations only: scores are private.

    Example: dpal histogram simulated --to histogram.png
    """
    from dpal.campaign.campaign import Campaign
    from dpal.reports.histogram_plot import plot_histograms

    require_free(to, force=force)
    opened = Campaign.open(campaign)
    queries = [opened.simulated_scores(group) for group in range(1, max(2, len(opened.state().selected)))]
    plot_histograms(queries, to, acquisition=opened.parts.acquisition.name)
    Console().print(f"drawn to {escape(str(to))}")
