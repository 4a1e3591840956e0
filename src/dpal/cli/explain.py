"""What an ε means, before there is a plan."""

import json
from typing import Annotated

import typer
from rich.console import Console

from dpal.cli.app import AsJson, app
from dpal.reports.epsilon_explanation import explain_epsilon
from dpal.reports.epsilon_table import epsilon_view


@app.command()
def explain(
    epsilon: Annotated[float, typer.Option(help="The ε to explain.")],
    delta: Annotated[float, typer.Option(help="The δ of the promise; well below 1 / number of records.")] = 1e-5,
    pool_size: Annotated[int | None, typer.Option(help="Records in the pool, to check the δ.")] = None,
    records_per_person: Annotated[
        int | None, typer.Option(help="The most records that one person has, to see what is promised to them.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain what an ε means: the worst case in words, what it does not say, what others use, how to choose.

    Example: dpal explain --epsilon 8 --records-per-person 5
    """
    explanation = explain_epsilon(
        epsilon=epsilon, delta=delta, pool_size=pool_size, records_per_person=records_per_person
    )
    if as_json:
        typer.echo(json.dumps(explanation.to_json(), indent=2, ensure_ascii=False))
    else:
        Console(highlight=False).print(epsilon_view(explanation))
