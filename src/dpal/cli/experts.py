"""Commands about the people who label: who they are, who sees what, and what they are told."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dpal.campaign.arranging import (
    add_person,
    arrange,
    current_arrangement,
    remove_person,
    renew_link,
    renew_operators_link,
)
from dpal.campaign.guidelines import write_guidelines
from dpal.campaign.reader import Reader
from dpal.cli.app import AsJson, Folder, app
from dpal.errors import InvalidArgument, MissingData

experts_app = typer.Typer(
    no_args_is_help=True, help="Say who labels on the page, who sees what, and what they are told."
)
app.add_typer(experts_app, name="experts")
Name = Annotated[str, typer.Argument(help="The person's name.", metavar="NAME")]
_LINK = "dpal serve prints everyone's link; the dashboard shows it too."


@experts_app.command("add")
def add(
    campaign: Folder,
    names: Annotated[list[str], typer.Argument(help="The people's names.", metavar="NAME...")],
    role: Annotated[
        str, typer.Option(help="expert labels, arbiter decides where experts differ, officer reads what is public.")
    ] = "expert",
) -> None:
    """Add people. Each gets a link of their own.

    Example: dpal experts add clinic "Dr. Okafor" "Dr. Lindqvist"
    """
    reader = Reader(campaign)
    for name in names:
        person = add_person(reader, name, role)
        Console().print(f"{escape(person.name)} is added as {person.role}.", highlight=False)
    Console().print(_LINK)


@experts_app.command("remove")
def remove(campaign: Folder, name: Name) -> None:
    """Remove someone: their link stops working, what they answered stays, and others are asked in their place."""
    remove_person(Reader(campaign), name)
    Console().print(f"{escape(name)} is removed.", highlight=False)


@experts_app.command("renew")
def renew(
    campaign: Folder,
    name: Annotated[str | None, typer.Argument(help="The person's name.", metavar="NAME")] = None,
    operator: Annotated[
        bool, typer.Option("--operator", help="Your own link, by which you run the campaign, in place of a person's.")
    ] = False,
) -> None:
    """Give someone a new link, such as after a lost tablet: the old one stops working."""
    if operator == (name is not None):
        raise InvalidArgument("NAME", name, "a person's name, or --operator for your own link")
    if name is None:
        renew_operators_link(Reader(campaign))
        Console().print(f"Your old link does not work any more. {_LINK}", highlight=False)
        return
    renew_link(Reader(campaign), name)
    Console().print(f"The old link of {escape(name)} does not work any more. {_LINK}", highlight=False)


@experts_app.command("arrange")
def arrange_command(
    campaign: Folder,
    see: Annotated[
        str | None, typer.Option(help="split: each question goes to one expert. everyone: to all of them.")
    ] = None,
    overlap: Annotated[
        float | None, typer.Option(help="With split: the share of questions that two experts answer, such as 0.1.")
    ] = None,
    rule: Annotated[
        str | None, typer.Option(help="How several answers become one: majority or unanimous.", metavar="RULE")
    ] = None,
) -> None:
    """Say who sees what, and how several answers become one label. Without options: what holds now."""
    arrangement = arrange(Reader(campaign), see=see, overlap=overlap, rule=rule)
    words = arrangement.in_words()
    Console(soft_wrap=True).print(f"{words[0].upper()}{words[1:]}.", highlight=False)


@experts_app.command("list")
def list_(campaign: Folder, as_json: AsJson = False) -> None:
    """Show who labels, and by which rule. Internal."""
    arrangement = current_arrangement(Reader(campaign))
    if as_json:
        typer.echo(json.dumps({"internal": arrangement.to_json()}))
        return
    console = Console(soft_wrap=True)
    if not arrangement.people:
        console.print(f"Nobody yet. Add someone: dpal experts add {escape(str(campaign))} NAME", highlight=False)
        return
    table = Table("name", "role")
    for person in arrangement.people:
        table.add_row(escape(person.name), person.role)
    console.print(table)
    words = arrangement.in_words()
    console.print(f"{words[0].upper()}{words[1:]}.", highlight=False)


@experts_app.command("guidelines")
def guidelines(
    campaign: Folder,
    file: Annotated[Path, typer.Argument(help="A text file with what the experts are told.", metavar="FILE")],
    example: Annotated[
        list[str] | None,
        typer.Option(help="A picture to show with it, and its words. May be repeated.", metavar="WORDS=FILE"),
    ] = None,
) -> None:
    """Set the guidelines that the page shows, with example pictures of your choice. They replace earlier ones.

    Everyone with a link sees the examples, so take pictures that may be shown, and none from the pool.

    Example: dpal experts guidelines clinic guide.txt --example "pneumonia=textbook-4.png"
    """
    Reader(campaign).state()
    if not file.is_file():
        raise MissingData(f"There is no file {file}.")
    pairs = [given.rpartition("=") for given in example or ()]
    if wrong := [file for words, sign, file in pairs if not (words and sign and file)]:
        raise InvalidArgument("--example", wrong[0], 'words and a file, such as "pneumonia=textbook-4.png"')
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgument("FILE", str(file), "a text file in UTF-8") from error
    made = write_guidelines(campaign, text, [(words, Path(picture)) for words, _, picture in pairs])
    Console().print(f"The page shows them from now on, with {len(made.examples)} example(s).", highlight=False)
