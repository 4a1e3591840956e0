"""The program itself, and what its commands share: a campaign's folder, --force, --json, and exit codes."""

import os
from pathlib import Path
from typing import Annotated

import typer

from dpal.cli.commands import Commands
from dpal.errors import DpalError, InvalidArgument

# Exit codes besides 0 for done.
UNEXPECTED, WRONG_INPUT, WAITING, BUSY, DAMAGED, AT_CHANCE, STOPPED = 1, 2, 3, 4, 5, 6, 130

# How a warning looks.
WARNING = "bold yellow"

Folder = Annotated[Path, typer.Argument(help="The campaign's folder.", metavar="CAMPAIGN")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist already.")]

app = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def main(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)] = False,
) -> None:
    """Differentially private active learning: one (ε, δ) promise for training and selection together.

    Start with: dpal demo. Your own: dpal init FOLDER, dpal run FOLDER, dpal status FOLDER.
    """
    if show_version:
        from dpal import __version__

        typer.echo(__version__)
        raise typer.Exit


def require_free(*files: Path | None, force: bool = False) -> None:
    """Before any work is done: no command replaces a file without --force, or writes where there is no folder."""
    for file in files:
        if file is None:
            continue
        if file.is_dir() or not file.parent.is_dir() or not file.name:
            raise InvalidArgument("the file to write", str(file), "a file in a folder that exists")
        if not force and os.path.lexists(file):
            raise DpalError(
                f"{file} exists already. Choose another name, or replace it with --force. Nothing was written."
            )
