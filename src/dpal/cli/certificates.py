"""The certificate, and comparisons of several campaigns."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from dpal.cli.app import app
from dpal.errors import InvalidArgument


@app.command()
def certificate(
    campaign: Annotated[Path, typer.Argument(help="The campaign's folder.", metavar="CAMPAIGN")],
    to: Annotated[Path, typer.Option(help="The PDF to write; the JSON file goes beside it.", metavar="FILE.pdf")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write the privacy certificate: one page of PDF for people, and JSON that dpal verify recomputes anywhere."""
    from dpal.campaign.files import write_text, write_whole
    from dpal.reports.certificate import certificate_of
    from dpal.reports.certificate_pdf import write_pdf

    if to.suffix.lower() != ".pdf" or not to.absolute().parent.is_dir():
        raise InvalidArgument("--to", str(to), "a .pdf file in a folder that exists")
    document = certificate_of(campaign)
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    write_text(to.with_suffix(".json"), text)
    write_whole(to, lambda draft: write_pdf(document, draft))
    if as_json:
        typer.echo(text)
    else:
        console = Console()
        console.print(document["statement"], highlight=False)
        console.print(f"written to {escape(str(to))} and {escape(str(to.with_suffix('.json')))}")


@app.command()
def compare(
    campaigns: Annotated[
        list[str],
        typer.Argument(help="Folders, or NAME=FOLDER to say what a run is called.", metavar="[NAME=]CAMPAIGN..."),
    ],
    to: Annotated[Path, typer.Option(help="The page to write (.html); .md, .tex and .json go beside it.")],
    metric: Annotated[str | None, typer.Option(help="accuracy, balanced_accuracy or auc.")] = None,
) -> None:
    """Compare campaigns: curves with bands over repeated runs, and tables for documents and papers.

    Runs with the same name, or without names the same planner and selection, are repetitions of one method.
    """
    from dpal.reports.comparison import markdown_table, run_of, summaries
    from dpal.reports.comparison_report import write_comparison

    runs = []
    for each in campaigns:
        name, equals, folder = each.partition("=")
        runs.append(run_of(folder, name) if equals else run_of(each))
    path = write_comparison(runs, to, metric=metric)
    chosen = metric or next(iter(runs[0].metrics[0]))
    Console().print(markdown_table(summaries(runs, chosen), chosen), highlight=False, markup=False)
    Console().print(f"written to {escape(str(path))}")


@app.command()
def histogram(
    campaign: Annotated[Path, typer.Argument(help="A simulated campaign's folder.", metavar="CAMPAIGN")],
    to: Annotated[Path, typer.Option(help="The picture to write (png, pdf or svg).", metavar="FILE")],
) -> None:
    """Draw the scores of everyone and of the selected, query by query. Simulations only: scores are private."""
    from dpal.campaign.campaign import Campaign
    from dpal.reports.histogram_plot import plot_histograms

    opened = Campaign.open(campaign)
    queries = [opened.simulated_scores(group) for group in range(1, max(2, len(opened.state().selected)))]
    plot_histograms(queries, to, acquisition=opened.parts.acquisition.name)
    Console().print(f"drawn to {escape(str(to))}")
