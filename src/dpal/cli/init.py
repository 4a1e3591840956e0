"""The command that creates a campaign: from a file, from a dataset's name, or from questions on a terminal."""

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from dpal.campaign.campaign import Campaign
from dpal.campaign.config import CampaignConfig, checked_config, read_config
from dpal.campaign.files import require_new
from dpal.cli.answered_config import config_of
from dpal.cli.app import STOPPED, WARNING, AsJson, app
from dpal.cli.init_questions import QUESTIONS
from dpal.cli.kept_answers import KeptAnswers
from dpal.cli.questions import Answers, ask
from dpal.errors import DpalError, InvalidArgument
from dpal.planning.plan import Plan
from dpal.reports.plan_table import plan_view
from dpal.selection.selection import PROMISES

if TYPE_CHECKING:
    # At run time it would import torch, which takes seconds and is an extra.
    from dpal.campaign.parts import Parts

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="A setting of the YAML file, such as plan.epochs=20. May be repeated.", metavar="KEY=VALUE"
    ),
]


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="The folder to create.", metavar="CAMPAIGN")],
    config: Annotated[Path | None, typer.Option(help="A YAML file (docs/campaigns.md).", metavar="FILE")] = None,
    data: Annotated[
        str | None, typer.Option(help="Without a file: a dataset's name, such as digits.", metavar="NAME")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="The ε of the promise.")] = None,
    selections: Annotated[
        str | None,
        typer.Option(
            help="inside: which records are labelled stays with you (default). released: it may be passed on.",
            metavar="|".join(PROMISES),
        ),
    ] = None,
    settings: Settings = None,
    seed: Annotated[
        int | None, typer.Option(help="For simulations: makes the noise predictable. Needs --not-private.")
    ] = None,
    not_private: Annotated[
        bool, typer.Option("--not-private", help="Nothing here is private, and every output says so.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Plan a campaign and create its folder. On a terminal, without --config or --data, it asks for the settings.

    Examples: dpal init clinic --config clinic.yaml    dpal init trial --data digits --epsilon 8
    """
    require_new(folder.absolute())
    extra = list(settings or [])
    if epsilon is not None:
        extra.insert(0, f"plan.target_epsilon={epsilon}")
    if selections is not None:
        extra.insert(0, f"plan.selections={selections}")
    if seed is not None or not_private:
        extra += [f"seed={'null' if seed is None else seed}", f"not_private={str(not_private).lower()}"]
    console = Console(stderr=as_json)
    if config is not None and data is not None:
        raise InvalidArgument("--data", data, "left out: the file of --config names the data")
    if data is not None and epsilon is None and not any(setting.startswith("plan.") for setting in extra):
        console.print("ε = 8, since --epsilon does not say otherwise.")
    if config is not None:
        campaign = Campaign.from_config(
            folder, read_config(config, extra), base=config.parent, tell=console.print, warn=partial(_warn, console)
        )
    elif data is not None:
        document = {"data": {"source": data}, "plan": {"target_epsilon": 8.0}}
        campaign = Campaign.from_config(
            folder, checked_config(document, extra), tell=console.print, warn=partial(_warn, console)
        )
    elif sys.stdin.isatty():
        given = {"epsilon": epsilon, "selections": selections}
        campaign = _asked(folder, {name: value for name, value in given.items() if value is not None}, extra, console)
    else:
        raise DpalError("Say what data to use: --config FILE, or --data NAME for a published dataset.")
    if as_json:
        typer.echo(json.dumps(campaign.status().to_json(), indent=2))
        return
    if config is not None or data is not None:
        console.print(plan_view(campaign.plan))
    name = escape(str(folder))
    console.print(f"{name} is ready. Nothing has been charged yet. Continue with: dpal run {name}")


def _asked(folder: Path, given: Answers, settings: Sequence[str], console: Console) -> Campaign:
    """The campaign of a person's answers. They are kept until it exists."""
    kept = KeptAnswers(folder)
    if not kept.is_ours:
        console.print(f"{escape(str(kept.file))} is not from these questions and stays as it is: answers are not kept.")
    offered = kept.offered()
    if offered:
        console.print(f"Your earlier answers ({escape(str(kept.file))}) are in brackets.")
    try:
        answers = ask(QUESTIONS, given=given, offered=offered, keep=kept.keep)
        config = checked_config(config_of(answers), settings)
        # Said after the plan, right before the last question.
        warnings: list[str] = []
        campaign = Campaign.from_config(
            folder,
            config,
            tell=console.print,
            warn=warnings.append,
            before_creating=partial(_agree, console, warnings),
        )
    except (typer.Abort, KeyboardInterrupt):
        console.print(f"\nStopped. Nothing was created. {_where(kept, folder)}")
        sys.exit(STOPPED)
    except DpalError as error:
        error.add_note(_where(kept, folder))
        raise
    kept.remove()
    return campaign


def _where(kept: KeptAnswers, folder: Path) -> str:
    """Where the answers are, and what to do with them."""
    if not kept.file.exists() or not kept.is_ours:
        return ""
    return f"Your answers are in {kept.file}. They are offered again by: dpal init {folder}"


def _warn(console: Console, words: str) -> None:
    console.print(words, style=WARNING, markup=False, highlight=False, soft_wrap=True)


def _agree(console: Console, warnings: Sequence[str], config: CampaignConfig, parts: "Parts", plan: Plan) -> None:
    """Show the plan, the time it takes and warnings, and ask whether to create the campaign."""
    from dpal.campaign.estimated_time import estimated_seconds, in_words

    console.print(plan_view(plan))
    seconds = estimated_seconds(config, parts, plan)
    if seconds is not None:
        console.print(f"Training and choosing take {in_words(seconds)} on this machine, without the time of people.")
    for words in warnings:
        _warn(console, words)
    if not typer.confirm("create the campaign?", default=True):
        raise typer.Abort
