"""The command that attacks dpal's own code with a plan's own numbers."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dpal.cli.app import DAMAGED, STOPPED, AsJson, Force, app, require_free
from dpal.errors import InvalidArgument

if TYPE_CHECKING:
    from dpal.audit.results import Audit


@app.command()
def audit(
    campaign: Annotated[
        Path | None,
        typer.Argument(help="A campaign whose plan and settings are attacked; its records are not read."),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="Instead: a plan's file (dpal plan --json).", metavar="PLAN")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="About half a minute instead of some minutes.")] = False,
    attack: Annotated[
        list[str] | None, typer.Option(help="Only this attack. May be repeated. Default: all.", metavar="NAME")
    ] = None,
    to: Annotated[
        Path | None, typer.Option(help="Write a page, and FILE.json next to it.", metavar="FILE.html")
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed, other chance.", min=0)] = 0,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Attack a plan with dpal's own code and made-up records, and compare what is found with the promise.

    Reads no record and charges nothing. Exit code 5: an attack saw what is impossible under the promise.

    Example: dpal audit clinic --quick --to audit.html
    """
    if (campaign is None) == (plan is None):
        raise InvalidArgument("CAMPAIGN and --plan", "both or neither", "exactly one of them")
    # Only here: they import torch and matplotlib.
    from dpal.audit.attack import FULL, QUICK
    from dpal.audit.audits import audit as audited
    from dpal.audit.results import LIMITS
    from dpal.audit.targets import target_of_campaign, target_of_plan
    from dpal.reports.audit_report import audit_table, json_file_of, write_audit

    if to is not None:
        require_free(to, json_file_of(to), force=force)
    target = target_of_plan(plan) if plan is not None else target_of_campaign(campaign or Path())
    console = Console(stderr=as_json, soft_wrap=True, highlight=False)
    effort = QUICK if quick else FULL
    try:
        result = audited(
            target, effort.with_seed(seed), names=attack or (), tell=lambda words: console.print(words, style="dim")
        )
    except KeyboardInterrupt:
        console.print("\nStopped. Nothing was charged, and nothing is left behind.")
        sys.exit(STOPPED)
    if to is not None:
        write_audit(result, to)
    if as_json:
        typer.echo(json.dumps(result.to_json(), indent=2, ensure_ascii=False))
    else:
        console.print(audit_table(result))
        console.print(result.verdict, style=_style_of(result))
        console.print(LIMITS)
        if to is not None:
            console.print(f"written to {to} and {json_file_of(to)}", markup=False)
    if result.is_broken:
        sys.exit(DAMAGED)


def _style_of(result: "Audit") -> str:
    return "bold red" if result.is_broken else "bold yellow" if result.above_claim else "bold green"
