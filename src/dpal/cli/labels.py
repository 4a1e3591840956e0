"""Commands for the people who label."""

import csv
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dpal.campaign.campaign import Campaign
from dpal.campaign.labelling import export_labels
from dpal.cli.app import AsJson, Folder, Force, app, require_free
from dpal.labels.label_files import DEFAULT_KIND
from dpal.labels.label_sheets import harmless
from dpal.selection.selection import INSIDE

# Printed after every number that depends on private records.
INTERNAL = "internal: do not pass these numbers on"
_HISTORY = ("at", "who", "name", "before", "after", "note")

FOR_LABELLING = (
    "The folder is for the people who label and for nobody else: which records are in it, and how many, stays inside. "
    "Close the round at a set time or when every answer is there, never because enough labels have come."
)

labels_app = typer.Typer(no_args_is_help=True, help="Give records to people and import their labels.")
app.add_typer(labels_app, name="labels")


@labels_app.command("export")
def export(
    campaign: Folder,
    to: Annotated[Path, typer.Option(help="A folder to make: the file to fill in, and the images.", metavar="FOLDER")],
    kind: Annotated[
        str, typer.Option("--format", help="csv, xlsx (Excel), jsonl, coco or label-studio.", metavar="KIND")
    ] = DEFAULT_KIND,
    as_json: AsJson = False,
) -> None:
    """Write the records that wait for a label to a folder: labels.csv, and images if the records are images.

    People fill in the column label with a class's name, skip, or cannot-tell. An empty cell means no answer yet. The
    folder has a text file that tells them so, with the classes and the campaign's guidelines.

    Example: dpal labels export clinic --to week-1
    """
    opened = Campaign(campaign)
    count, file = export_labels(opened.reader, to, opened.open_data(), kind)
    if as_json:
        typer.echo(json.dumps({"folder": str(to) if count else None, "internal": {"records": count}}))
    elif file is not None:
        table = escape(str(to / file.name))
        Console().print(f"{count:,} records (internal) to label in {escape(str(to))}. Fill in {table}, then:")
        Console().print(f"  dpal labels import {escape(str(campaign))} {table}")
        if opened.plan.setting.promise == INSIDE:
            Console().print(FOR_LABELLING)
    else:
        Console().print("No records are waiting for a label.")


@labels_app.command("import")
def import_(
    campaign: Folder,
    file: Annotated[
        Path,
        typer.Argument(help="What was exported, filled in: .csv, .xlsx, .jsonl, or .json of COCO or Label Studio."),
    ],
    as_json: AsJson = False,
) -> None:
    """Import labels from a table: all of them or, if anything is wrong, none.

    A table may be partly filled in and may be imported several times; an answer that differs from an earlier one
    corrects it.
    """
    opened = Campaign(campaign)
    counts = opened.import_labels(file, opened.open_data())
    status = opened.status()
    missing = status.internal.waiting_for_labels
    if as_json:
        typer.echo(json.dumps({"next_step": status.next_step, "internal": {**counts, "waiting_for_labels": missing}}))
        return
    Console().print(
        f"{counts['new']:,} new, {counts['corrected']:,} corrected, {counts['unchanged']:,} unchanged; "
        f"{missing:,} still missing ({INTERNAL}). Next: {status.next_step}"
    )
    if status.stage == "finished" and counts["new"] + counts["corrected"]:
        Console().print("The campaign is finished: these answers are recorded, but no model will be trained on them.")
    if counts["withdrawn"]:
        Console().print(f"{counts['withdrawn']:,} answers for withdrawn records were ignored ({INTERNAL}).")


@labels_app.command("identify")
def identify(
    campaign: Folder,
    names: Annotated[list[str], typer.Argument(help="Names from an exported table.", metavar="NAME...")],
    as_json: AsJson = False,
) -> None:
    """Show which records the names in a table stand for, such as one that an expert found unreadable.

    Only for people who may see the records' ids.
    """
    ids = Campaign(campaign).identify(names)
    if as_json:
        typer.echo(json.dumps(ids))
    else:
        for name, record_id in ids.items():
            typer.echo(f"{name}: {'no record is called this' if record_id is None else record_id}")
    if None in ids.values():
        raise typer.Exit(2)


@labels_app.command("sync")
def sync(campaign: Folder, as_json: AsJson = False) -> None:
    """Send what is asked to the Label Studio server of campaign.yaml, and take in what is answered there.

    dpal run --wait does the same every ten seconds. It may be broken off anywhere, and repeated.
    """
    opened = Campaign(campaign)
    synced = opened.sync_labels()
    status = opened.status()
    if as_json:
        internal = {"tasks_added": synced.tasks_added, "answers": synced.answers, "problems": synced.problems}
        internal["waiting_for_labels"] = status.internal.waiting_for_labels
        typer.echo(json.dumps({"next_step": status.next_step, "internal": internal}))
        return
    console = Console(soft_wrap=True)
    console.print(
        f"{synced.tasks_added:,} tasks sent, {synced.answers:,} answers taken; "
        f"{status.internal.waiting_for_labels:,} still missing ({INTERNAL}). Next: {status.next_step}"
    )
    for problem in synced.problems:
        console.print(f"not taken: {problem}", markup=False, highlight=False)


@labels_app.command("history")
def history(
    campaign: Folder,
    to: Annotated[Path | None, typer.Option(help="Write it as a table (.csv) instead.", metavar="FILE.csv")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Show every answer: who gave it, when, from what to what, and the note. Internal.

    Answers that still wait in the inbox come once the campaign takes them in (dpal run, or any import).
    """
    from dpal.campaign.answer_history import answer_history

    require_free(to, force=force)
    entries = [entry.to_json() for entry in answer_history(Campaign(campaign).reader)]
    if to is not None:
        with to.open("w", newline="", encoding="utf-8-sig") as file:
            writer = csv.writer(file)
            writer.writerow(_HISTORY)
            writer.writerows([harmless(entry[name]) for name in _HISTORY] for entry in entries)
        Console().print(f"{len(entries):,} answers written to {escape(str(to))} ({INTERNAL}).")
    elif as_json:
        typer.echo(json.dumps({"internal": entries}, ensure_ascii=False))
    else:
        table = Table(*_HISTORY, title="Every answer (internal: do not pass it on)")
        for entry in entries:
            # To the second, which fits: a file and JSON have it in full.
            when = entry["at"][:19].replace("T", " ")
            table.add_row(when, *(escape(entry[name]) for name in _HISTORY[1:]))
        Console().print(table)


@labels_app.command("close")
def close(campaign: Folder, as_json: AsJson = False) -> None:
    """Continue without the missing labels. They can still be imported later.

    Where selections stay inside, do this at a time that was set beforehand, and never because a certain number of
    labels was reached: that would make one record's part depend on others.
    """
    count = Campaign(campaign).close_round()
    if as_json:
        typer.echo(json.dumps({"internal": {"left_out": count}}))
    else:
        Console().print(f"{count:,} records are left out for now ({INTERNAL}).")
        Console().print(f"Continue with: dpal run {escape(str(campaign))}")
