"""The certificate, and comparisons of several campaigns."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from dpal.cli.app import app
from dpal.cli.output_files import Force, require_free
from dpal.errors import DpalError, InvalidArgument, MissingData, MissingPackage
from dpal.privacy.rounding import rounded_up
from dpal.reports.plain_words import exactly

if TYPE_CHECKING:
    from dpal.reports.signature import Signed

_DAMAGED = 5


@app.command()
def certificate(
    campaign: Annotated[Path, typer.Argument(help="The campaign's folder.", metavar="CAMPAIGN")],
    to: Annotated[
        Path, typer.Option(help="The PDF to write; the JSON file is named FILE.pdf.json.", metavar="FILE.pdf")
    ],
    sign_with: Annotated[
        Path | None, typer.Option(help="Sign it with this private key (dpal keys new).", metavar="PRIVATE.pem")
    ] = None,
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write the privacy certificate: a PDF for people, and JSON that dpal verify recomputes anywhere.

    Example: dpal certificate clinic --to clinic.pdf --sign-with keys/private.pem
    """
    from dpal.campaign.files import write_text, write_whole
    from dpal.reports.certificate import certificate_of
    from dpal.reports.signature import private_key, signed

    try:
        from dpal.reports.certificate_pdf import write_pdf
    except ModuleNotFoundError as error:
        raise MissingPackage("Certificates need matplotlib: pip install 'dpal[plots]'. Nothing was written.") from error
    if to.suffix.lower() != ".pdf" or not to.absolute().parent.is_dir():
        raise InvalidArgument("--to", str(to), "a .pdf file in a folder that exists")
    json_file = to.with_name(f"{to.name}.json")
    require_free(to, json_file, force=force)
    key = None if sign_with is None else private_key(sign_with)
    document = certificate_of(campaign)
    if key is not None:
        document = signed(document, key)
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    write_text(json_file, text)
    write_whole(to, lambda draft: write_pdf(document, draft))
    if as_json:
        typer.echo(text)
    else:
        console = Console()
        console.print(document["statement"], highlight=False)
        console.print(document["worst_case"], highlight=False)
        console.print(f"written to {escape(str(to))} and {escape(str(json_file))}")


@app.command()
def compare(
    campaigns: Annotated[
        list[str],
        typer.Argument(help="Folders, or NAME=FOLDER to say what a run is called.", metavar="[NAME=]CAMPAIGN..."),
    ],
    to: Annotated[Path, typer.Option(help="The page to write (.html); .md, .tex and .json go beside it.")],
    metric: Annotated[str | None, typer.Option(help="accuracy, balanced_accuracy or auc.")] = None,
    force: Force = False,
) -> None:
    """Compare campaigns: curves with bands over repeated runs, and tables for documents and papers.

    Runs with the same name, or without names the same planner and selection, are repetitions of one method.
    """
    from dpal.reports.comparison import markdown_table, run_of, summaries
    from dpal.reports.comparison_report import write_comparison

    to.parent.mkdir(parents=True, exist_ok=True)
    require_free(*(to.with_suffix(suffix) for suffix in (".html", ".md", ".tex", ".json")), force=force)
    runs = []
    for each in campaigns:
        name, equals, folder = each.partition("=")
        runs.append(run_of(folder, name) if equals else run_of(each))
    path = write_comparison(runs, to, metric=metric)
    chosen = metric or next(iter(runs[0].metrics[0]))
    Console().print(markdown_table(summaries(runs, chosen), chosen), highlight=False, markup=False)
    Console().print(f"written to {escape(str(path))}")


@app.command()
def histogram(
    campaign: Annotated[Path, typer.Argument(help="A simulated campaign's folder.", metavar="CAMPAIGN")],
    to: Annotated[Path, typer.Option(help="The picture to write (png, pdf or svg).", metavar="FILE")],
    force: Force = False,
) -> None:
    """Draw the scores of everyone and of the selected, query by query. Simulations only: scores are private."""
    from dpal.campaign.campaign import Campaign
    from dpal.reports.histogram_plot import plot_histograms

    require_free(to, force=force)
    opened = Campaign.open(campaign)
    queries = [opened.simulated_scores(group) for group in range(1, max(2, len(opened.state().selected)))]
    plot_histograms(queries, to, acquisition=opened.parts.acquisition.name)
    Console().print(f"drawn to {escape(str(to))}")


def verify_certificate_file(file: Path, *, key: Path | None, model: Path | None, as_json: bool) -> None:
    """Recompute a certificate, check its signature and hold a model against it; exit code 5 where anything is wrong."""
    from dpal.campaign.files import digest
    from dpal.reports.certificate import read_certificate, verify_certificate
    from dpal.reports.signature import checked_signature, public_key

    # What the person got wrong comes first, and is not the certificate's fault.
    given = None if key is None else public_key(key)
    if model is not None and not model.is_file():
        raise MissingData(f"There is no model {model}.")
    document = read_certificate(file)
    try:
        signature = checked_signature(document, given)
        epsilon = verify_certificate(document)
        if model is not None and document["model_sha256"] != (own := digest(model)):
            raise InvalidArgument("the SHA-256 of the model", own, f"{document['model_sha256']}, the certificate's")
    except DpalError as error:
        Console(stderr=True, soft_wrap=True).print(f"[red]NOT VERIFIED[/red]: {escape(str(error))}", highlight=False)
        sys.exit(_DAMAGED)
    shown = rounded_up(epsilon, 9)
    if as_json:
        facts = {
            "holds": True,
            "epsilon": epsilon,
            "delta": document["delta"],
            "signed_with": None if signature is None else signature.fingerprint,
            "key_was_given": signature is not None and signature.key_was_given,
            "model_is_the_certified_one": None if model is None else True,
        }
        typer.echo(json.dumps(facts))
        return
    console = Console(soft_wrap=True, highlight=False)
    console.print(escape(document["statement"]))
    console.print(escape(document["worst_case"]))
    console.print(f"[bold green]verified[/bold green]: recomputed ε = {shown:.9f} at δ = {exactly(document['delta'])}")
    console.print(_signature_words(signature))
    if model is not None:
        console.print(f"model: {escape(str(model))} is the one that the certificate is about")


def _signature_words(signature: "Signed | None") -> str:
    if signature is None:
        return "signature: none. The numbers follow from one another, but anyone could have written this file."
    if signature.key_was_given:
        return f"signature: by the key that was given, {signature.fingerprint}"
    return (
        f"signature: by the key {signature.fingerprint}, which came with the certificate. This shows only that nothing "
        "was changed after signing, not who signed: compare the fingerprint, or give the signer's key with --key."
    )
