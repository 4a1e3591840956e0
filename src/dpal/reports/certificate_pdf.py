"""The certificate on one page of paper."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from dpal.reports.style import COLOURS, RC

# A4, in inches.
_WIDTH, _HEIGHT = 8.27, 11.69
_LEFT, _LINE = 0.09, 0.0155
_COLUMNS = 96
_MOST_ROWS = 12


def write_pdf(certificate: Mapping[str, Any], path: Path, *, kind: str = "pdf") -> None:
    """One page, with text that can be searched and copied; the kind png is for showing it on a screen."""
    with mpl.rc_context(rc=RC | {"pdf.fonttype": 42, "svg.fonttype": "none"}):
        figure = Figure(figsize=(_WIDTH, _HEIGHT))
        page = _Page(figure)
        page.line("Privacy certificate", size=20, weight="bold", gap=2.6)
        page.line(
            f"{certificate['campaign']}, issued {certificate['issued']} by dpal {certificate['dpal_version']}", gap=2.2
        )
        page.paragraph(certificate["statement"], size=11.5, weight="bold", color=COLOURS[0], columns=72)
        page.heading("What was promised")
        page.pairs(
            [
                ("promise", f"ε = {certificate['epsilon_budget']:g}, δ = {certificate['delta']:g}"),
                ("spent", f"ε = {certificate['epsilon']:.9f}"),
                ("unit of privacy", certificate["unit"]),
                ("adjacency", certificate["adjacency"]),
                ("accountant", f"{certificate['accountant']}, {certificate['accounting']} accounting"),
            ]
        )
        page.heading("Mechanisms")
        page.rows([_mechanism(each) for each in certificate["mechanisms"]])
        page.heading("Released")
        page.bullets(certificate["released"])
        page.heading("Not released")
        page.bullets(certificate["not_released"])
        page.heading("Assumptions")
        page.bullets(certificate["assumptions"])
        page.heading("Check it")
        page.paragraph(
            f"{certificate['verify_with']} recomputes every number above from the JSON file that belongs to this page, "
            "on any machine, without the data."
        )
        page.pairs([("plan", certificate["plan_hash"]), ("ledger", certificate["ledger_hash"])], size=7.5)
        metadata = {"CreationDate": None, "Title": "dpal privacy certificate"} if kind == "pdf" else None
        figure.savefig(path, format=kind, metadata=metadata)


def _mechanism(each: Mapping[str, Any]) -> str:
    if "noise_multiplier" in each and "sampling_probabilities" in each:
        rates = ", ".join(f"{rate:.4f}" for rate in each["sampling_probabilities"][:4])
        more = ", …" if len(each["sampling_probabilities"]) > 4 else ""
        return (
            f"{each['where']}: {each['times']:,} × Gaussian, noise multiplier {each['noise_multiplier']:.4f}, "
            f"sampling rates {rates}{more}"
        )
    known = {"where", "times", "mechanism", "private", "query_size", "unlabelled"}
    numbers = ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in each.items() if name not in known)
    return f"{each['where']}: {each['mechanism']}, {each['query_size']:,} of {each['unlabelled']:,} records, {numbers}"


class _Page:
    """Lines from top to bottom."""

    def __init__(self, figure: Figure) -> None:
        self.figure, self.place = figure, 0.955

    def line(self, text: str, *, size: float = 9.5, gap: float = 1.0, **look: Any) -> None:
        self.figure.text(_LEFT, self.place, text, fontsize=size, va="top", **look)
        self.place -= gap * _LINE

    def paragraph(self, text: str, *, size: float = 9.0, columns: int = _COLUMNS, **look: Any) -> None:
        for part in textwrap.wrap(text, columns):
            self.line(part, size=size, gap=size / 8.5, **look)

    def heading(self, text: str) -> None:
        self.place -= 0.6 * _LINE
        self.line(text, size=11, weight="bold", gap=1.35)

    def pairs(self, pairs: Sequence[tuple[str, str]], *, size: float = 9.0) -> None:
        for name, value in pairs:
            self.figure.text(_LEFT + 0.17, self.place, value, fontsize=size, va="top")
            self.line(name, size=size)

    def bullets(self, items: Sequence[str]) -> None:
        for item in items:
            first, *rest = textwrap.wrap(item, _COLUMNS + 4)
            self.line(f"•  {first}", size=8.5, gap=0.95)
            for part in rest:
                self.line(f"    {part}", size=8.5, gap=0.95)

    def rows(self, rows: Sequence[str]) -> None:
        """All of them, or the first and last where a page is too short; the JSON file has all."""
        shown = list(rows)
        if len(rows) > _MOST_ROWS:
            half = _MOST_ROWS // 2
            left_out = f"… {len(rows) - 2 * half} more, in the JSON file …"
            shown = [*rows[:half], left_out, *rows[-half:]]
        for row in shown:
            first, *rest = textwrap.wrap(row, _COLUMNS + 14) or [""]
            self.line(first, size=7.8, gap=0.85)
            for part in rest:
                self.line(f"    {part}", size=7.8, gap=0.85)
