"""`dpal epsilon PLAN|CAMPAIGN --records-per-person 1,2,5`: what several records of one person cost."""

import json
from pathlib import Path

import typer
from rich.console import Console

from dpal.errors import InvalidArgument
from dpal.planning.certification import load_plan
from dpal.planning.plan import Plan
from dpal.privacy.mixture_of_gaussians import MOST_RECORDS
from dpal.reports.several_records import (
    BOUNDS,
    RIGHT_GUESSES,
    SeveralRecordsRow,
    rows_of_charges,
    rows_of_plan,
    several_records_table,
)

_PLAN, _CHARGED = "What the whole plan may spend", "What was charged so far"


def show_several_records(source: Path | None, numbers: str | None, *, as_json: bool) -> None:
    """A table for the plan, and one for what was charged where there is a campaign."""
    if source is None:
        raise InvalidArgument(
            "PLAN|CAMPAIGN", "", "given: the file of a plan (dpal plan --json) or a campaign's folder"
        )
    if numbers is None:
        raise InvalidArgument("--records-per-person", "", "given with a plan or a campaign: numbers such as 1,2,5,30")
    records = _numbers(numbers)
    console = Console(highlight=False)
    with console.status("accounting …"):
        plan, tables = _tables(source, records)
    if as_json:
        document: dict[str, object] = {"delta": plan.setting.target_delta, "bounds": BOUNDS}
        document |= {
            "plan" if title == _PLAN else "charged": [row.to_json() for row in rows] for title, rows in tables.items()
        }
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    for title, rows in tables.items():
        console.print(several_records_table(title, rows))
    console.print(f"{RIGHT_GUESSES} δ is the plan's own, for all records of the person together.")
    for bound in sorted({row.bound for rows in tables.values() for row in rows}):
        console.print(f"Bound, {BOUNDS[bound]}.")


def _tables(source: Path, records: list[int]) -> tuple[Plan, dict[str, tuple[SeveralRecordsRow, ...]]]:
    if source.is_dir():
        # Only here, since campaigns are slow to import.
        from dpal.campaign.campaign import Campaign
        from dpal.campaign.ledger import Ledger

        campaign = Campaign(source)
        plan, ledger = campaign.plan, Ledger.of(campaign.state())
    elif not source.is_file():
        allowed = "a plan's file (dpal plan --json), a campaign's folder or a certificate's JSON file"
        raise InvalidArgument("PLAN|CAMPAIGN", str(source), allowed)
    elif _is_certificate(source):
        # Only here: they need cryptography, which is slow to import.
        from dpal.reports.certificate import charged_by, verify_certificate
        from dpal.reports.certificate_files import read_certificate

        document = read_certificate(source)
        verify_certificate(document)
        plan, ledger = charged_by(document)
    else:
        plan = load_plan(source)
        return plan, {_PLAN: rows_of_plan(plan, records)}
    charged = rows_of_charges(plan, ledger, records)
    return plan, {_CHARGED: charged, _PLAN: rows_of_plan(plan, records)}


def _is_certificate(file: Path) -> bool:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "certificate" in document


def _numbers(text: str) -> list[int]:
    try:
        numbers = sorted({int(number) for number in text.split(",")})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < 1 or numbers[-1] > MOST_RECORDS:
        allowed = f"whole numbers from 1 to {MOST_RECORDS:,} such as 1,2,5,30"
        raise InvalidArgument("--records-per-person", text, allowed)
    return numbers
