"""The command of the demonstration."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from dpal.cli.app import app
from dpal.privacy.rounding import rounded_up


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where its campaigns go. An earlier demo there is replaced.")] = Path(
        "dpal-demo"
    ),
) -> None:
    """Run eight whole private campaigns on 1,437 real digits, in two minutes: random labels against the private cut."""
    from dpal.experiments.demo import difference_in_words, run_demo

    console = Console()
    rows, picture = run_demo(folder, tell=lambda words: console.print(words, highlight=False))
    table = Table(title="The same promise, labelling budget and number of steps, for different records")
    for heading in ("selection", "campaigns", "mean accuracy", "ε spent", "verified"):
        table.add_column(heading, justify="left" if heading == "selection" else "right")
    for row in rows:
        table.add_row(
            row.name,
            f"{len(row.accuracies)}",
            f"{row.mean:.1%}",
            f"{rounded_up(row.epsilon_spent, 4):.4f} of 8",
            "yes" if row.holds else "NO",
        )
    console.print(table)
    console.print(difference_in_words(rows), highlight=False)
    console.print("docs/results.md has careful comparisons on other data.")
    console.print(f"picture: {picture}")
    for row in rows:
        console.print(f"report: {row.report}")
    console.print(f"look around: dpal status {rows[-1].folder}; dpal verify {rows[-1].folder}", highlight=False)
