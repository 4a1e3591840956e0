"""The program itself."""

from typing import Annotated

import typer

from dpal import __version__

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def main(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)] = False,
) -> None:
    """Differentially private active learning: one (ε, δ) promise for training and selection together.

    Start with: dpal demo. Your own: dpal init FOLDER, dpal run FOLDER, dpal status FOLDER.
    """
    if show_version:
        typer.echo(__version__)
        raise typer.Exit
