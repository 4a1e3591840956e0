"""Commands for privacy certificates and the keys that sign them."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from dpal.cli.app import DAMAGED, AsJson, Folder, Force, app, require_free
from dpal.privacy.rounding import rounded_up
from dpal.reports.plain_words import exactly

keys_app = typer.Typer(no_args_is_help=True, help="Make keys for signing certificates.")
app.add_typer(keys_app, name="keys")


@keys_app.command("new")
def new_key_pair(
    folder: Annotated[Path, typer.Argument(help="Where the two files go; made if it is missing.", metavar="FOLDER")],
    as_json: AsJson = False,
) -> None:
    """Make a pair of Ed25519 keys: private.pem signs and stays with you, public.pem is for everyone who checks.

    Example: dpal keys new keys, then dpal certificate clinic --to c.pdf --sign-with keys/private.pem
    """
    from dpal.reports.signature import PRIVATE, PUBLIC, new_keys

    fingerprint = new_keys(folder)
    if as_json:
        files = {"private_key": str(folder / PRIVATE), "public_key": str(folder / PUBLIC)}
        typer.echo(json.dumps(files | {"fingerprint": fingerprint}))
        return
    console = Console(soft_wrap=True)
    console.print(f"{escape(str(folder / PRIVATE))} signs: keep it to yourself, it is not protected by a password.")
    console.print(f"{escape(str(folder / PUBLIC))} checks: give it to everyone who checks your certificates.")
    console.print(f"fingerprint {fingerprint}", highlight=False)


@app.command()
def certificate(
    campaign: Folder,
    to: Annotated[
        Path, typer.Option(help="The PDF to write; the JSON file is named FILE.pdf.json.", metavar="FILE.pdf")
    ],
    sign_with: Annotated[
        Path | None, typer.Option(help="Sign it with this private key (dpal keys new).", metavar="PRIVATE.pem")
    ] = None,
    audit: Annotated[
        Path | None,
        typer.Option(help="State what attacks on this plan found (dpal audit --to FILE.html).", metavar="FILE.json"),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write the privacy certificate: a PDF for people, and JSON that dpal verify recomputes anywhere.

    Example: dpal certificate clinic --to clinic.pdf --sign-with keys/private.pem
    """
    from dpal.reports.certificate_files import json_file_of, write_certificate

    json_file = json_file_of(to)
    require_free(to, json_file, force=force)
    document = write_certificate(campaign, to, sign_with=sign_with, audit=audit)
    if as_json:
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    console = Console(highlight=False)
    console.print(escape(document["statement"]))
    console.print(escape(document["worst_case"]))
    console.print(escape(document["selections_in_short"]))
    console.print(f"written to {escape(str(to))} and {escape(str(json_file))}")


def verify_certificate_file(file: Path, *, key: Path | None, model: Path | None, as_json: bool) -> None:
    """`dpal verify` of a certificate. Exit code 5 if anything in it is wrong."""
    from dpal.reports.certificate_files import NotVerified, check_certificate

    try:
        checked = check_certificate(file, key=key, model=model)
    except NotVerified as error:
        Console(stderr=True, soft_wrap=True).print(f"[red]NOT VERIFIED[/red]: {escape(str(error))}", highlight=False)
        sys.exit(DAMAGED)
    document, signature = checked.document, checked.signature
    if as_json:
        facts = {
            "holds": True,
            "epsilon": checked.epsilon,
            "delta": document["delta"],
            "selections": document["selections"],
            "signed_with": None if signature is None else signature.fingerprint,
            "key_was_given": signature is not None and signature.key_was_given,
            "model_is_the_certified_one": None if model is None else True,
        }
        typer.echo(json.dumps(facts))
        return
    console = Console(soft_wrap=True, highlight=False)
    console.print(escape(document["statement"]))
    console.print(escape(document["worst_case"]))
    console.print(escape(document["selections_in_short"]))
    console.print(
        f"[bold green]verified[/bold green]: recomputed ε = {rounded_up(checked.epsilon, 9):.9f} at "
        f"δ = {exactly(document['delta'])}"
    )
    console.print(checked.signature_words())
    if model is not None:
        console.print(f"model: {escape(str(model))} is the one that the certificate is about")
