"""The command that tries a plan on public records before any private one is read."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from dpal.cli.app import AT_CHANCE, STOPPED, AsJson, app
from dpal.errors import InvalidArgument, MissingData
from dpal.reports.plain_words import exactly, spaced

if TYPE_CHECKING:
    # At run time it would import torch, which takes seconds and is an extra.
    from dpal.rehearsal.forecasts import Forecast, Rehearsal


@app.command()
def rehearse(
    source: Annotated[
        Path, typer.Argument(help="A YAML file as for dpal init --config, or a campaign's folder.", metavar="SOURCE")
    ],
    on: Annotated[
        str | None,
        typer.Option(
            help="The public records: held-out, synthetic, a dataset's name, or a YAML file. Default: the public "
            "held-out set; without one, digits, or synthetic features for texts.",
            metavar="NAME|FILE",
        ),
    ] = None,
    epsilons: Annotated[
        str | None, typer.Option(help="Several values of ε, to choose one: 1,2,4,8.", metavar="E,E,…")
    ] = None,
    runs: Annotated[int, typer.Option(help="Campaigns for each ε; more show how far luck goes.", min=1)] = 3,
    with_random: Annotated[
        bool, typer.Option("--with-random", help="Also with all labels drawn at random, to see what choosing brings.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the YAML file. May be repeated.", metavar="KEY=VALUE"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the very plan, model and number of labels on public records, and forecast accuracy and time.

    Reads no private record and charges nothing. Exit code 6: the models are no better than chance, whatever the ε.

    Example: dpal rehearse clinic.yaml --epsilons 1,2,4,8
    """
    if not source.exists():
        raise MissingData(f"There is no file or folder {source}.")
    asked = () if epsilons is None else _numbers(epsilons)
    # Only here: it imports torch.
    from dpal.rehearsal.forecasts import rehearse as rehearsed

    console = Console(stderr=as_json)
    try:
        result = rehearsed(
            source,
            on=on,
            epsilons=asked,
            runs=runs,
            with_random=with_random,
            settings=settings or [],
            tell=lambda words: console.print(words, markup=False, highlight=False, soft_wrap=True),
        )
    except KeyboardInterrupt:
        console.print("\nStopped. Nothing was charged, and nothing is left behind.")
        sys.exit(STOPPED)
    if as_json:
        typer.echo(json.dumps(result.to_json(), indent=2))
    else:
        _show(result, console)
    if result.is_at_chance:
        sys.exit(AT_CHANCE)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise InvalidArgument("--epsilons", text, "numbers separated by commas, such as 1,2,4,8") from error


def _show(result: "Rehearsal", console: Console) -> None:
    several = len({forecast.target_epsilon for forecast in result.forecasts}) > 1
    names = list(result.forecasts[0].final)
    table = Table(title=f"A rehearsal on {result.stand_in}", title_justify="left")
    for heading in ("ε", "labels", "after phase", *("mean AUC" if name == "auc" else spaced(name) for name in names)):
        table.add_column(heading, justify="right")
    for forecast in result.forecasts:
        for number, phase in enumerate(forecast.phases, start=1):
            if several and number < len(forecast.phases):
                continue
            cells = [shown(name, phase[name]) for name in names]
            table.add_row(exactly(forecast.target_epsilon), forecast.selection, str(number), *cells)
    console.print(table)
    for words in sentences(result):
        console.print(words, highlight=False, soft_wrap=True)
    if result.is_at_chance:
        console.print(
            "No better than chance: with this plan the model learns nothing here. What may help: a public encoder as "
            "the model, if it is not one already; more labels; fewer phases, if there are several; a larger ε. If the "
            "public records are your own, check their labels and the order of the classes first.",
            style="bold yellow",
            soft_wrap=True,
        )


def sentences(result: "Rehearsal") -> list[str]:
    """What the numbers mean, and what they do not."""
    # Only here: it imports torch.
    from dpal.campaign.estimated_time import in_words

    said = [_records(result)]
    if result.runs > 1:
        said.append(f"± is how far single campaigns differ, from {result.runs} of them.")
    if result.classes != result.pool_classes:
        said.append(f"These records have {result.classes} classes; yours have {result.pool_classes}.")
    said += sorted({forecast.remark for forecast in _own(result) if forecast.remark and forecast.selection == "random"})
    if result.majority is not None:
        said.append(f"Always answering the most frequent class would be right for {result.majority:.1%}.")
    if result.is_like_the_pool:
        said.append("Expect about this from the campaign, if the held-out set is like the pool.")
    else:
        said.append(
            "Your own records may be easier or harder: this tells whether the plan lets a model learn, and how results "
            "change with ε, not how accurate yours will be. A public held-out set in the configuration tells more."
        )
    seconds = max(_own(result), key=lambda forecast: forecast.seconds).seconds
    encoding = f", and encoding the records {in_words(result.encoding_seconds)}" if result.encoding_seconds else ""
    said.append(f"On this machine, training and choosing take {in_words(seconds)}{encoding}. Nothing was charged.")
    return said


def _records(result: "Rehearsal") -> str:
    filled = f"a pool of {result.pool_size:,}; {result.labelling_budget:,} labels."
    if result.distinct_records < result.pool_size:
        return f"{result.distinct_records:,} different records, repeated until they fill {filled}"
    return f"{result.distinct_records:,} records, as many of them as {filled}"


def _own(result: "Rehearsal") -> "list[Forecast]":
    return [forecast for forecast in result.forecasts if forecast.selection != "random"] or list(result.forecasts)


def shown(name: str, values: tuple[float, ...]) -> str:
    """The mean over the runs and the deviation of single ones."""
    # Only here: it imports torch.
    from dpal.rehearsal.forecasts import mean_and_deviation

    mean, deviation = mean_and_deviation(values)
    if name == "auc":
        return f"{mean:.3f}" if deviation is None else f"{mean:.3f} ± {deviation:.3f}"
    return f"{mean:.1%}" if deviation is None else f"{mean:.1%} ± {100 * deviation:.1f}"
