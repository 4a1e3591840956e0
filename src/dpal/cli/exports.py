"""Commands that hand a campaign's public facts to other tools."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from dpal.campaign.campaign import Campaign
from dpal.cli.app import AsJson, Folder, app

export_app = typer.Typer(no_args_is_help=True, help="Write a finished campaign's public facts to other tools.")
app.add_typer(export_app, name="export")


@export_app.callback()
def main() -> None:
    """Write a finished campaign's public facts to other tools."""


@export_app.command("mlflow")
def mlflow(
    campaign: Folder,
    to: Annotated[
        str, typer.Option(help="A folder, sqlite:///FILE.db, or an MLflow server's address.", metavar="PLACE")
    ],
    experiment: Annotated[str, typer.Option(help="The experiment there; made if it is missing.")] = "dpal",
    sign_with: Annotated[
        Path | None, typer.Option(help="Sign the certificate with this private key.", metavar="PRIVATE.pem")
    ] = None,
    onnx: Annotated[bool, typer.Option("--onnx", help="Also write the model as ONNX.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the campaign's run that is there already.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write ε by phase, scores on the public held-out set, the certificate and the model as one run.

    Nothing else is written: docs/mlflow.md has every name. A campaign that is there already is not written twice.

    Example: dpal export mlflow clinic --to sqlite:///mlflow.db
    """
    from dpal.reports.mlflow_store import require_mlflow, shown, write_to_mlflow
    from dpal.reports.tracked_facts import require_public

    require_mlflow()
    require_public(Campaign(campaign))
    written = write_to_mlflow(
        Campaign.open(campaign), to, experiment=experiment, sign_with=sign_with, onnx=onnx, force=force
    )
    if as_json:
        facts = {"run": written.run, "experiment": written.experiment, "artifacts": list(written.artifacts)}
        facts |= {"parameters": dict(written.facts.parameters), "tags": dict(written.facts.tags)}
        typer.echo(json.dumps(facts | {"metrics": dict(written.facts.metrics)}, ensure_ascii=False))
        return
    console = Console(soft_wrap=True)
    console.print(f"run {written.run} of the experiment {escape(written.experiment)} at {escape(shown(to))}")
