"""An audit as a page for people and a JSON file next to it, and as a table for a terminal."""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from dpal.audit.results import FALSE_ALARM, LIMITS, RISK, Audit, Finding, rounded_down
from dpal.campaign.files import write_text
from dpal.errors import InvalidArgument
from dpal.privacy.rounding import rounded_up
from dpal.reports.figures import COLOURS, RC, as_svg, line_style
from dpal.reports.html_pages import inline_svg, render
from dpal.reports.plain_words import exactly

HEADINGS = ("attack", "claimed ε", "bound", "if Gaussian", "guesses", "runs", "s", "")
_NARROW = ("attack", "claimed ε", "bound", "if Gaussian", "guesses", "")


def json_file_of(page: Path) -> Path:
    """The JSON file that belongs to a page."""
    return page.with_suffix(".json")


def write_audit(audit: Audit, page: Path) -> None:
    """Write the page, and next to it the JSON file."""
    if page.suffix.lower() != ".html":
        raise InvalidArgument("--to", str(page), "named with .html")
    write_text(json_file_of(page), json.dumps(audit.to_json(), indent=2, ensure_ascii=False) + "\n")
    write_text(page, _page(audit))


def audit_table(audit: Audit) -> Table:
    """The findings, one attack in a row, as narrow as a terminal; the page has runs and seconds as well."""
    table = Table()
    for heading in _NARROW:
        table.add_column(heading, justify="left" if heading in ("attack", "") else "right", no_wrap=True)
    for finding in audit.findings:
        cells = dict(zip(HEADINGS, _row(finding), strict=True))
        table.add_row(*(cells[heading] for heading in _NARROW), style="bold red" if finding.broken else None)
    return table


def _row(finding: Finding) -> tuple[str, ...]:
    gaussian = "" if finding.gaussian_bound is None else rounded_down(finding.gaussian_bound)
    is_above = finding.epsilon_bound > finding.claimed_epsilon
    return (
        finding.attack,
        f"{rounded_up(finding.claimed_epsilon, 4):.4f}",
        rounded_down(finding.epsilon_bound),
        gaussian,
        f"{finding.guesses:,}",
        f"{finding.runs:,}",
        f"{finding.seconds:.0f}",
        "BROKEN" if finding.broken else "unclear" if is_above else "within",
    )


def _page(audit: Audit) -> str:
    return render(
        "audit.html",
        audit=audit,
        claimed=f"{rounded_up(audit.claimed_epsilon, 4):.4f}",
        delta=exactly(audit.delta),
        headings=HEADINGS,
        rows=[(finding, _row(finding)) for finding in audit.findings],
        bounds=inline_svg(as_svg(_bounds(audit))),
        curves=inline_svg(as_svg(_curves(audit))),
        limits=LIMITS,
        risk=exactly(RISK),
        risk_of_strongest=exactly(audit.risk_of_strongest),
        false_alarm=exactly(FALSE_ALARM),
    )


def _bounds(audit: Audit) -> Figure:
    """What each attack rules out, next to what is claimed of what it attacked."""
    with mpl.rc_context(rc=RC):
        figure = Figure(figsize=(7.2, 0.9 + 0.42 * len(audit.findings)), layout="constrained")
        axes = figure.subplots()
        places = np.arange(len(audit.findings))[::-1]
        claimed = [finding.claimed_epsilon for finding in audit.findings]
        found = [finding.epsilon_bound for finding in audit.findings]
        axes.barh(places, claimed, color="#d9dde3", label="claimed")
        colours = [COLOURS[1] if finding.broken else COLOURS[0] for finding in audit.findings]
        axes.barh(places, found, height=0.5, color=colours, label="bound: ruled out below")
        gaussian = [finding.gaussian_bound or np.nan for finding in audit.findings]
        axes.plot(gaussian, places, "k|", markersize=12, label="if Gaussian")
        axes.set_yticks(places, [finding.attack for finding in audit.findings])
        axes.set_xlabel("ε")
        axes.grid(axis="y", visible=False)
        figure.legend(loc="outside lower center", ncols=3)
        return figure


def _curves(audit: Audit) -> Figure:
    """How often guesses are right and wrong, at every threshold; on the diagonal they are worth nothing."""
    with mpl.rc_context(rc=RC):
        figure = Figure(figsize=(7.2, 4.2), layout="constrained")
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color="#999999", linewidth=1, linestyle="--", label="guessing")
        for index, finding in enumerate(finding for finding in audit.findings if finding.curve):
            style: dict[str, Any] = line_style(index) | {"marker": ""}
            wrong, right = ([point[side] for point in finding.curve] for side in (0, 1))
            axes.plot(wrong, right, label=finding.attack, **style)
        axes.set_xlabel("guessed “there”, of those that were not")
        axes.set_ylabel("guessed “there”, of those that were")
        axes.set_aspect("equal")
        axes.legend(loc="lower right")
        return figure
