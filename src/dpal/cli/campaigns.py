"""Commands that run and inspect campaigns."""

import json
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from dpal.campaign.campaign import Campaign
from dpal.campaign.chance import ends_at_chance
from dpal.campaign.events import Announcer
from dpal.campaign.facts import ChargedTraining
from dpal.campaign.going_on import AT_THE_END
from dpal.campaign.going_on import advice as what_may_help
from dpal.campaign.layout import REPORT
from dpal.campaign.progress_file import reporting_progress
from dpal.campaign.several_processes import Place, training_processes, work
from dpal.campaign.status import FINISHED
from dpal.cli.app import AT_CHANCE, DAMAGED, STOPPED, WAITING, AsJson, Folder, Force, app, require_free
from dpal.cli.certificates import verify_certificate_file
from dpal.errors import BadData, CampaignBusy, DpalError, InvalidArgument, MissingData
from dpal.planning.promises import WORDS
from dpal.privacy.rounding import rounded_up
from dpal.reports.campaign_table import status_view, verification_view


@app.command("run")
def run_command(
    campaign: Folder,
    go_on: Annotated[
        bool, typer.Option("--go-on", help="Go on although a model is no better than chance on the held-out set.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="With --go-on: a setting of training for later phases.", metavar="KEY=VALUE"),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for answers, from the page or Label Studio, and continue by itself.")
    ] = False,
    processes: Annotated[
        int | None,
        typer.Option("--processes", help="Train in so many processes on this machine, such as one per GPU.", min=1),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Continue until labels are missing or everything is done. It can be stopped and run again at any time.

    Where there is a held-out set, it stops before the next charge if a model is no better than chance. With several
    processes it trains the same model, with the same draws, noise and charge (docs/many-processes.md).

    Exit code 0: finished. 3: waiting for labels. 6: a model is no better than chance.
    """
    if settings and not go_on:
        raise InvalidArgument("--set", ", ".join(settings), "given together with --go-on")
    if (place := Place.of_this_process()) is not None and place.rank > 0:
        work(campaign, place)
        return
    console = Console(stderr=as_json)
    opened = Campaign(campaign)
    announcer: Announcer | None = None
    try:
        # Refuses a folder that is not a campaign, before a file is made in it.
        opened.state()
        # What it tells goes on in one line of a log, however long.
        with reporting_progress(opened.folder), training_processes(opened.folder, processes, place) as together:
            opened.load(tell=lambda words: console.print(words, markup=False, highlight=False, soft_wrap=True))
            opened.runner.processes = together
            announcer = Announcer(
                opened.config.events,
                opened.state(),
                tell=lambda words: console.print(words, markup=False, highlight=False, soft_wrap=True),
            )
            status = opened.run(go_on=go_on, settings=settings or [])
            announcer.now(status, opened.state())
            while wait and status.is_waiting:
                console.print(f"waiting for answers ({status.next_step})", highlight=False)
                opened.wait_for_answers()
                status = opened.run(go_on=go_on)
                announcer.now(status, opened.state())
    except KeyboardInterrupt:
        console.print(f"Stopped. Nothing is lost. Continue with: dpal run {escape(str(campaign))}")
        sys.exit(STOPPED)
    except CampaignBusy:
        raise
    except Exception as error:
        if advice := _how_to_continue(opened, campaign):
            error.add_note(advice)
        with suppress(DpalError, OSError):
            if announcer is not None:
                announcer.failed(opened.status())
        raise
    if as_json:
        typer.echo(json.dumps(status.to_json(), indent=2))
    else:
        console.print(status_view(status))
        if status.is_waiting:
            if opened.config.labels is not None:
                console.print(f"Send it to Label Studio, and fetch answers: dpal labels sync {escape(str(campaign))}.")
            console.print(f"Label in the browser: dpal serve {escape(str(campaign))}. It can stay open all the time.")
            console.print(f"Or in a table: dpal labels export {escape(str(campaign))} --to FOLDER")
    if status.is_stopped:
        state = opened.state()
        steps = opened.schedule.phases[state.trained[-1].phase].steps
        words = what_may_help(campaign, opened.runner.model.at(state).learning_rate(steps))
        console.print(words, style="bold yellow", markup=False, highlight=False, soft_wrap=True)
    if status.stage == FINISHED and ends_at_chance(opened.state().evaluated):
        console.print(AT_THE_END, style="bold yellow", markup=False, highlight=False, soft_wrap=True)
    if status.is_waiting or status.is_stopped:
        sys.exit(WAITING if status.is_waiting else AT_CHANCE)


def _how_to_continue(opened: Campaign, campaign: Path) -> str | None:
    """After an error in a phase: what is charged, and how to leave a phase that cannot finish."""
    try:
        open_charge = opened.state().open_charge
    except (DpalError, OSError):
        return None
    if open_charge is None or not isinstance(open_charge[1], ChargedTraining):
        return None
    return (
        f"Phase {open_charge[1].phase + 1} is charged and not finished. dpal run {campaign} repeats it at no further "
        f"cost. If it can never finish, give it up and continue without its model: dpal give-up {campaign}, if needed "
        "with --set training.learning_rate=..., training.max_physical_batch_size=... or another training setting."
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
    """Give up a training phase that is charged and cannot finish, and let the campaign continue.

    Its charge still counts, its key is erased and its model is never used: later steps start from the newest recorded
    model. This cannot be undone.

    Example: dpal give-up clinic --set training.learning_rate=0.001
    """
    result = Campaign(campaign).give_up(reason=reason, settings=settings or [])
    if as_json:
        typer.echo(json.dumps(asdict(result), indent=2))
        return
    console = Console(soft_wrap=True)
    console.print(escape(result.words()), highlight=False)
    if result.settings_changed:
        console.print("campaign.yaml has the new settings, which cost no privacy.")
    console.print(f"Continue with: dpal run {escape(str(campaign))}", highlight=False)


def _print_schema(wanted: bool) -> None:
    if wanted:
        from dpal.campaign.status_schema import status_schema

        typer.echo(json.dumps(status_schema(), indent=2, ensure_ascii=False))
        raise typer.Exit


@app.command()
def status(
    campaign: Folder,
    as_json: AsJson = False,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema", help="Print the JSON schema of what --json prints.", is_eager=True, callback=_print_schema
        ),
    ] = False,
) -> None:
    """Show where a campaign stands: what is done, what is next, what was spent. Works while it runs."""
    opened = Campaign(campaign)
    current, running = opened.status(), opened.running()
    if as_json:
        typer.echo(json.dumps(current.to_json() | {"running": running}, indent=2))
    else:
        Console().print(status_view(current, running))


@app.command()
def verify(
    campaign: Annotated[
        Path, typer.Argument(help="A campaign's folder, or a certificate's JSON file.", metavar="PATH")
    ],
    ledger: Annotated[
        Path | None, typer.Option(help="Also write what was charged, for other accountants.", metavar="FILE")
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(help="For a certificate: the public key that its signature must match.", metavar="PUBLIC.pem"),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="For a certificate: the model that it must be about.", metavar="FILE")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Recompute every ε from what was recorded and compare with the plan. Exit code 5 if anything does not hold.

    A certificate is recomputed from its own content, on any machine; an edited one is refused, naming the field.

    Example: dpal verify clinic.pdf.json --key public.pem --model model.safetensors
    """
    if not campaign.exists():
        raise MissingData(f"There is no file or folder {campaign}.")
    if campaign.is_file():
        if ledger is not None:
            raise InvalidArgument("--ledger", str(ledger), "left out for a certificate, which has the charges itself")
        verify_certificate_file(campaign, key=key, model=model, as_json=as_json)
        return
    if key is not None or model is not None:
        raise InvalidArgument("PATH", str(campaign), "the JSON file of a certificate where --key or --model is given")
    require_free(ledger, force=force)
    opened = Campaign(campaign)
    verification = opened.verify()
    if ledger is not None:
        ledger.write_text(json.dumps(opened.ledger(), indent=2) + "\n", encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(verification.to_json(), indent=2))
    else:
        Console().print(verification_view(verification))
    if not verification.holds:
        sys.exit(DAMAGED)


@app.command()
def report(
    campaign: Folder,
    to: Annotated[Path | None, typer.Option(help="Where to write it (.html). Default: in the campaign.")] = None,
    public: Annotated[
        bool,
        typer.Option("--public", help="Leave out what the promise does not cover, to pass the report on."),
    ] = False,
    baseline: Annotated[
        Path | None, typer.Option(help="Another campaign, such as a random one, for the curve.", metavar="CAMPAIGN")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write the campaign's report: one HTML file that opens anywhere, and the same as JSON next to it."""
    from dpal.reports.campaign_report import write_report

    if to is not None:
        to.parent.mkdir(parents=True, exist_ok=True)
        require_free(to, to.with_suffix(".json"), force=force)
    # The report in the campaign's folder is always the newest one.
    path = write_report(campaign, to or campaign / REPORT, internal=not public, baseline=baseline)
    if as_json:
        typer.echo(path.with_suffix(".json").read_text(encoding="utf-8"))
    else:
        Console().print(f"written to {escape(str(path))}")


@app.command()
def withdraw(
    campaign: Folder,
    ids: Annotated[list[str] | None, typer.Argument(help="The ids of the records.", metavar="ID...")] = None,
    reason: Annotated[str, typer.Option(help="Why, for your own records. It stays in the campaign.")] = "",
    from_file: Annotated[Path | None, typer.Option(help="A text file with one id per line.", metavar="FILE")] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(
            help="A person, or whatever the units are: all of their records. May be repeated.", metavar="NAME"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Remove records from a campaign for good, such as after a withdrawn consent. It continues without them.

    They are no longer scored, offered, trained on or exported, and their files may be deleted. What was trained and
    selected before stays as it is. Example: dpal withdraw clinic scan-17.png --reason "consent withdrawn"
    """
    wanted = [*(ids or ()), *([] if from_file is None else _lines(from_file))]
    if not wanted and not unit:
        raise InvalidArgument("ID", None, "at least one id, a file of ids (--from-file), or a unit (--unit)")
    opened = Campaign(campaign)
    count = opened.withdraw(wanted, units=unit or (), reason=reason)
    # How many records a unit has is not said here.
    again = 0 if unit else len(set(wanted)) - count
    if as_json:
        typer.echo(json.dumps({"withdrawn": count, "withdrawn_before": again}))
        return
    console = Console()
    before = f", {again:,} were withdrawn before" if again else ""
    console.print(f"{count:,} records are withdrawn for good{before}. Continue with: dpal run {escape(str(campaign))}")
    if opened.contents().ids_are_row_numbers():
        console.print("The ids are row numbers: do not remove the rows. They may be emptied.")


def _lines(file: Path) -> list[str]:
    if not file.is_file():
        raise MissingData(f"There is no file {file}.")
    try:
        return [line for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise BadData(f"{file} is not a UTF-8 text file with one id per line. No record was withdrawn.") from error


@app.command("export-model")
def export_model(
    campaign: Folder,
    to: Annotated[Path, typer.Option(help="The file to write, in safetensors format.", metavar="FILE")],
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Also write the model as ONNX, from records as they are to logits.")
    ] = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write the newest model's weights, and what was promised about it in FILE.json, and for people in FILE.md."""
    card, readme = to.with_name(to.name + ".json"), to.with_name(to.name + ".md")
    require_free(to, card, readme, to.with_suffix(".onnx") if onnx else None, force=force)
    facts = Campaign.open(campaign).export_model(to, onnx=onnx)
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
    else:
        spent = f"ε = {rounded_up(facts['epsilon'], 4):.4f} at δ = {facts['delta']:g}"
        Console().print(f"{escape(str(to))} and {escape(str(card))}: {spent}")
        if facts["is_private"]:
            Console().print(WORDS[facts["selections"]].short)
        else:
            Console().print("[bold red]NOT PRIVATE[/bold red]: made with a seed, or a selection that is not private.")
