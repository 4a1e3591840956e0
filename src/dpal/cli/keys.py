"""Keys for signing certificates."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from dpal.cli.app import app

keys_app = typer.Typer(no_args_is_help=True, help="Make keys for signing certificates.")
app.add_typer(keys_app, name="keys")


@keys_app.command("new")
def new(
    folder: Annotated[Path, typer.Argument(help="Where the two files go; made where it is missing.", metavar="FOLDER")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make a pair of Ed25519 keys: private.pem signs and stays with you, public.pem is for everyone who checks.

    Example: dpal keys new keys, then dpal certificate clinic --to c.pdf --sign-with keys/private.pem
    """
    from dpal.reports.signature import PRIVATE, PUBLIC, new_keys

    found = new_keys(folder)
    if as_json:
        files = {"private_key": str(folder / PRIVATE), "public_key": str(folder / PUBLIC)}
        typer.echo(json.dumps(files | {"fingerprint": found}))
        return
    console = Console(soft_wrap=True)
    console.print(f"{escape(str(folder / PRIVATE))} signs: keep it to yourself, it is not protected by a password.")
    console.print(f"{escape(str(folder / PUBLIC))} checks: hand it to everyone who is to check your certificates.")
    console.print(f"fingerprint {found}", highlight=False)
