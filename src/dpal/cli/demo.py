"""The command of the demonstration."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from dpal.cli.app import app
from dpal.imports import optional
from dpal.privacy.rounding import rounded_up


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where its campaigns go. An earlier demo there is replaced.")] = Path(
        "dpal-demo"
    ),
    label: Annotated[
        bool, typer.Option("--label", help="Label digits yourself in the browser instead, in five minutes.")
    ] = False,
    port: Annotated[int, typer.Option(help="With --label: where the page is. 0 takes any free port.")] = 8000,
) -> None:
    """Run eight whole private campaigns on 1,437 real digits, in two minutes: random labels against the private cut.

    With --label you are the expert: up to 80 digits, by key or tap, while a model is trained privately and asks for
    more.
    """
    if label:
        _label(folder, port)
        return
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


def _label(folder: Path, port: int) -> None:
    """Serve a campaign for the newcomer to label, next to one with random labels, until Ctrl-C."""
    optional("uvicorn", extra="web")
    from dpal.campaign.background import start_run
    from dpal.campaign.progress_file import request_stop
    from dpal.experiments.demo import RANDOM_ONES, YOURS, labelling_campaigns
    from dpal.web.access import Access, campaign_path
    from dpal.web.server import Address, serve

    console = Console(soft_wrap=True)
    console.print("making two small campaigns on digits: yours, and one with random labels to compare with")
    campaigns = labelling_campaigns(folder)

    def ready(access: Access, address: Address) -> None:
        for place in campaigns.values():
            start_run(place, go_on=True)
        desk = access.desks[YOURS]
        (person,) = desk.arrangement.people
        label = f"{address.base}{campaign_path(YOURS)}#token={desk.token(person)}"
        console.print(f"Label here:  {label}", markup=False, highlight=False)
        console.print(f"Watch here:  {address.base}/#token={access.operator_token}", markup=False, highlight=False)
        console.print(
            f"The dashboard draws {YOURS} next to {RANDOM_ONES}: open {YOURS} there. Stop with Ctrl-C.", highlight=False
        )

    try:
        serve(list(campaigns.values()), port=port, ready=ready)
    finally:
        for place in campaigns.values():
            request_stop(place)
    console.print(f"Stopped. Go on later: dpal run {folder / YOURS} --wait; dpal serve {folder / YOURS}", markup=False)
