"""Commands of a campaign's life."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from dpal.campaign.config import checked_config, read_config
from dpal.campaign.facts import ChargedTraining
from dpal.campaign.folder import CampaignFolder
from dpal.cli.app import app
from dpal.cli.questions import ask
from dpal.errors import CampaignBusy, DpalError, InvalidArgument
from dpal.privacy.rounding import rounded_up
from dpal.reports.campaign_table import status_view, verification_view
from dpal.reports.plan_table import plan_view

if TYPE_CHECKING:
    from dpal.campaign.campaign import Campaign

_WAITING, _DAMAGED, _STOPPED = 3, 5, 130

Folder = Annotated[Path, typer.Argument(help="The campaign's folder.", metavar="CAMPAIGN")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="A setting of the YAML file, such as plan.epochs=20. May be repeated.", metavar="KEY=VALUE"
    ),
]


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="The folder to make.", metavar="CAMPAIGN")],
    config: Annotated[Path | None, typer.Option(help="A YAML file (docs/campaigns.md).", metavar="FILE")] = None,
    data: Annotated[
        str | None, typer.Option(help="Without a file: a dataset's name, such as digits.", metavar="NAME")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="The ε of the promise.")] = None,
    settings: Settings = None,
    seed: Annotated[
        int | None, typer.Option(help="For simulations: makes the noise predictable. Needs --not-private.")
    ] = None,
    not_private: Annotated[
        bool, typer.Option("--not-private", help="Nothing here is private, and every output will say so.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Plan a campaign and make its folder. On a terminal, without --config or --data, it asks.

    Examples: dpal init clinic --config clinic.yaml    dpal init trial --data digits --epsilon 8
    """
    extra = list(settings or [])
    if epsilon is not None:
        extra.insert(0, f"plan.target_epsilon={epsilon}")
    if seed is not None or not_private:
        extra += [f"seed={'null' if seed is None else seed}", f"not_private={str(not_private).lower()}"]
    console = Console(stderr=as_json)
    if config is not None:
        chosen, base = read_config(config, extra), config.parent
    elif data is not None:
        document = {"data": {"source": data}, "plan": {"target_epsilon": 8.0}, "model": {"name": "resnet9"}}
        chosen, base = checked_config(document, extra), Path()
    elif sys.stdin.isatty():
        chosen, base = checked_config(ask(epsilon), extra), Path()
    else:
        raise InvalidArgument("--config", None, "a YAML file, or --data a dataset's name")
    campaign = _campaign().from_config(folder, chosen, base=base, tell=console.print)
    if as_json:
        typer.echo(json.dumps(campaign.status().to_json(), indent=2))
        return
    console.print(plan_view(campaign.plan))
    name = escape(str(folder))
    console.print(f"{name} is ready. Nothing has been charged yet. Continue with: dpal run {name}")


@app.command("run")
def run_command(campaign: Folder, as_json: AsJson = False) -> None:
    """Go on until labels are missing or everything is done. It can be stopped and run again at any time.

    Exit code 0: finished. 3: waiting for labels.
    """
    console = Console(stderr=as_json)
    try:
        with console.status("opening the data and the model …"):
            opened = _campaign().open(campaign, tell=console.print)
        status = opened.run()
    except KeyboardInterrupt:
        console.print(f"Stopped. Nothing is lost: continue with dpal run {escape(str(campaign))}")
        sys.exit(_STOPPED)
    except CampaignBusy:
        raise
    except Exception as error:
        if advice := _how_to_go_on(campaign):
            error.add_note(advice)
        raise
    if as_json:
        typer.echo(json.dumps(status.to_json(), indent=2))
    else:
        console.print(status_view(status))
        if status.is_waiting:
            console.print(f"Hand out the records with: dpal labels export {escape(str(campaign))} --to FOLDER")
    if status.is_waiting:
        sys.exit(_WAITING)


def _how_to_go_on(campaign: Path) -> str | None:
    """After an error in a phase: what is charged, and the way out of a phase that cannot end."""
    try:
        open_charge = CampaignFolder(campaign).state().open_charge
    except (DpalError, OSError):
        return None
    if open_charge is None or not isinstance(open_charge[1], ChargedTraining):
        return None
    return (
        f"Phase {open_charge[1].phase + 1} is charged and not finished. dpal run {campaign} does it again, at no more "
        f"cost. If it can never end, give it up and go on without its model: dpal give-up {campaign}, if need be with "
        "--set training.learning_rate=..., training.max_physical_batch_size=... or another setting of training."
    )


@app.command("give-up")
def give_up(
    campaign: Folder,
    reason: Annotated[str, typer.Option(help="Why, in words. They stay in the campaign's folder.")] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of training for later phases. May be repeated.", metavar="KEY=VALUE"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Give up a training phase that is charged and cannot end, and let the campaign go on.

    Its charge stands, its key is erased and its model is never used: later steps start from the newest recorded model.
    This cannot be undone.

    Example: dpal give-up clinic --set training.learning_rate=0.001
    """
    result = CampaignFolder(campaign).give_up(reason=reason, settings=settings or [])
    if as_json:
        typer.echo(json.dumps(asdict(result), indent=2))
        return
    console = Console(soft_wrap=True)
    console.print(escape(result.words()), highlight=False)
    if result.settings_changed:
        console.print("campaign.yaml has the new settings, which cost no privacy.")
    console.print(f"Continue with: dpal run {escape(str(campaign))}", highlight=False)


@app.command()
def status(campaign: Folder, as_json: AsJson = False) -> None:
    """Where a campaign stands: what is done, what is next, what was spent. Works while it runs."""
    folder = CampaignFolder(campaign)
    found, running = folder.status(), folder.running()
    if as_json:
        typer.echo(json.dumps(found.to_json() | {"running": running}, indent=2))
    else:
        Console().print(status_view(found, running))


@app.command()
def verify(
    campaign: Annotated[
        Path, typer.Argument(help="A campaign's folder, or a certificate's JSON file.", metavar="PATH")
    ],
    ledger: Annotated[
        Path | None, typer.Option(help="Also write what was charged, for other accountants.", metavar="FILE")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute every ε from what was recorded and compare with the plan. Exit code 5 if anything does not hold.

    A certificate is recomputed from itself alone, on any machine; an edited one is refused, naming the field.
    """
    if campaign.is_file():
        _verify_certificate(campaign, as_json=as_json)
        return
    folder = CampaignFolder(campaign)
    found = folder.verify()
    if ledger is not None:
        ledger.write_text(json.dumps(folder.ledger(), indent=2) + "\n", encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=2))
    else:
        Console().print(verification_view(found))
    if not found.holds:
        sys.exit(_DAMAGED)


def _verify_certificate(file: Path, *, as_json: bool) -> None:
    from dpal.reports.certificate import read_certificate, verify_certificate

    document = read_certificate(file)
    try:
        epsilon = verify_certificate(document)
    except InvalidArgument as error:
        Console(stderr=True, soft_wrap=True).print(f"[red]NOT VERIFIED[/red]: {escape(str(error))}", highlight=False)
        sys.exit(_DAMAGED)
    if as_json:
        typer.echo(json.dumps({"holds": True, "epsilon": epsilon, "delta": document["delta"]}))
    else:
        console = Console()
        console.print(escape(document["statement"]), highlight=False)
        console.print(f"[bold green]verified[/bold green]: recomputed ε = {epsilon:.9f} at δ = {document['delta']:g}")


@app.command()
def report(
    campaign: Folder,
    to: Annotated[Path | None, typer.Option(help="Where to write it (.html). Default: in the campaign.")] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Leave out what the promise does not cover, to hand the report on.")
    ] = False,
    baseline: Annotated[
        Path | None, typer.Option(help="Another campaign, such as a random one, for the curve.", metavar="CAMPAIGN")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the campaign's report: one HTML file that opens anywhere, and the same as JSON beside it."""
    from dpal.reports.campaign_report import write_report

    path = write_report(campaign, to or campaign / "reports" / "report.html", internal=not public, baseline=baseline)
    if as_json:
        typer.echo(path.with_suffix(".json").read_text(encoding="utf-8"))
    else:
        Console().print(f"written to {escape(str(path))}")


@app.command("export-model")
def export_model(
    campaign: Folder,
    to: Annotated[Path, typer.Option(help="The file to write, in safetensors format.", metavar="FILE")],
    as_json: AsJson = False,
) -> None:
    """Write the newest model's weights, and what was promised about it as FILE.json."""
    facts = _campaign().open(campaign).export_model(to)
    card = to.with_name(to.name + ".json")
    card.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
    else:
        spent = f"ε = {rounded_up(facts['epsilon'], 4):.4f} at δ = {facts['delta']:g}"
        Console().print(f"{escape(str(to))} and {escape(str(card))}: {spent}")
        if not facts["is_private"]:
            Console().print("[bold red]NOT PRIVATE[/bold red]: made with a seed or a selection that protects nobody.")


def _campaign() -> "type[Campaign]":
    """Only when needed: it imports torch, which takes seconds."""
    from dpal.campaign.campaign import Campaign

    return Campaign
