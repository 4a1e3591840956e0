"""The certificate as a PDF of two pages."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.image import imsave
from numpy.typing import NDArray

from dpal.reports.figures import COLOURS, RC
from dpal.reports.plain_words import LITTLE, exactly, parameter, percent_at_most, right_guesses, spaced
from dpal.reports.signature import checked_signature

# A4, in inches.
_WIDTH, _HEIGHT = 8.27, 11.69
_LEFT, _LINE = 0.09, 0.0155
_COLUMNS = 100
_MOST_ROWS = 12


def write_pdf(certificate: Mapping[str, Any], path: Path, *, kind: str = "pdf") -> None:
    """Two pages, with text that can be searched and copied. The kind png has both pages side by side, for a screen."""
    with mpl.rc_context(rc=RC | {"pdf.fonttype": 42}):
        figures = pages(certificate)
        if kind == "pdf":
            metadata = {"CreationDate": None, "Title": "dpal privacy certificate"}
            with PdfPages(path, metadata=metadata) as document:
                for figure in figures:
                    document.savefig(figure)
            return
        pictures: list[NDArray[np.uint8]] = []
        for figure in figures:
            canvas = FigureCanvasAgg(figure)
            canvas.draw()
            pictures.append(np.asarray(canvas.buffer_rgba(), dtype=np.uint8))
        imsave(path, np.hstack(pictures), format=kind)


def pages(certificate: Mapping[str, Any]) -> list[Figure]:
    """The first page has what was promised and done, the second the assumptions and how to check it."""
    first, second = _Page(), _Page()
    little = LITTLE in certificate["statement"]
    first.line("Privacy certificate", size=20, weight="bold", gap=2.6)
    first.line(
        f"{certificate['campaign']}, issued {certificate['issued']} by dpal {certificate['dpal_version']}", gap=2.2
    )
    first.paragraph(
        certificate["statement"],
        size=11.5,
        weight="bold",
        color=COLOURS[1 if little else 0],
        columns=72,
        gid="statement",
    )
    first.heading("What it means")
    first.paragraph(certificate["worst_case"])
    first.heading("Selections")
    first.paragraph(f"{certificate['selections_in_short']} {certificate['selections_in_words']}")
    first.heading("What was promised")
    first.pairs(
        [
            ("promise", f"ε = {exactly(certificate['epsilon_budget'])}, δ = {exactly(certificate['delta'])}"),
            ("spent", f"ε = {certificate['epsilon']:.6f}"),
            ("selections", certificate["selections"]),
            ("unit of privacy", certificate["unit"]),
            ("adjacency", certificate["adjacency"]),
            ("accountant", f"{certificate['accountant']}, {certificate['accounting']} accounting"),
        ]
    )
    first.heading("Mechanisms")
    first.rows(
        [_mechanism(mechanism) for mechanism in certificate["mechanisms"]] or ["none yet: nothing has been charged"]
    )
    first.heading("Released")
    first.bullets(certificate["released"])
    first.heading("Not released")
    first.bullets(certificate["not_released"])
    if (audit := certificate.get("audit")) is not None:
        second.heading("Attacks on the plan")
        second.paragraph(audit["in_words"])
    if (encoder := certificate.get("encoder")) is not None:
        second.heading("Public encoder")
        second.paragraph(f"{encoder['in_words']} Its weights: {encoder['weights']}, SHA-256 {encoder['sha256']}.")
    if (of_unit := certificate["unit_in_words"]) is not None:
        second.heading("Whom it protects")
        second.paragraph(of_unit)
    if (several := certificate["several_records"]) is not None:
        second.heading("Several records of one person")
        second.paragraph(several["in_words"])
        second.rows([_several(row, certificate["delta"]) for row in several["rows"]])
    second.heading("Assumptions")
    second.bullets(certificate["assumptions"], between=0.1)
    second.heading("Check it")
    second.paragraph(
        f"{certificate['verify_with']} recomputes every ε on these pages from the JSON file that belongs to them, "
        "on any machine, without the data. With --key it checks who signed; with --model, whether a model is the "
        "certified one."
    )
    second.pairs(
        [
            ("model", certificate["model_sha256"] or "none yet"),
            ("plan", certificate["plan_hash"]),
            ("ledger", certificate["ledger_hash"]),
            ("signed with", _signer(certificate)),
        ],
        size=8.0,
    )
    for number, page in enumerate((first, second), start=1):
        footer = f"{certificate['campaign']}, {certificate['issued']}, page {number} of 2"
        page.figure.text(_LEFT, 0.035, footer, fontsize=8, color="0.4", gid="footer")
    return [first.figure, second.figure]


def _signer(certificate: Mapping[str, Any]) -> str:
    signature = checked_signature(certificate)
    return "not signed" if signature is None else f"key {signature.fingerprint}"


def _several(row: Mapping[str, Any], delta: float) -> str:
    if row["epsilon"] is None:
        return f"{row['records']} records: {row['in_words']}"
    right = percent_at_most(right_guesses(row["epsilon"], delta))
    return (
        f"{row['records']} records: ε = {row['epsilon']:.4f} ({row['bound']} bound). A guess that is right 50% of the "
        f"time becomes right at most {right} of the time."
    )


def _mechanism(mechanism: Mapping[str, Any]) -> str:
    if "noise_multiplier" in mechanism and "sampling_probabilities" in mechanism:
        rates = ", ".join(f"{rate:.4f}" for rate in mechanism["sampling_probabilities"][:4])
        more = ", …" if len(mechanism["sampling_probabilities"]) > 4 else ""
        return (
            f"{mechanism['where']}: {mechanism['times']:,} × Gaussian, "
            f"noise multiplier {mechanism['noise_multiplier']:.4f}, sampling rates {rates}{more}"
        )
    if "query_size" not in mechanism:
        return f"{mechanism['where']}: Gaussian, noise multiplier {mechanism['noise_multiplier']:.4f}, every record"
    known = {"where", "times", "mechanism", "private", "query_size", "unlabelled"}
    numbers = [f"{spaced(name)} {parameter(name, value)}" for name, value in mechanism.items() if name not in known]
    planned = "planned " if "wanted" in mechanism else ""
    taken = f"{planned}{mechanism['query_size']:,} of {mechanism['unlabelled']:,} records"
    return f"{mechanism['where']}: {', '.join([mechanism['mechanism'], taken, *numbers])}"


class _Page:
    """A page that is filled with lines from top to bottom."""

    def __init__(self) -> None:
        self.figure, self.top = Figure(figsize=(_WIDTH, _HEIGHT)), 0.955

    def line(self, text: str, *, size: float = 9.5, gap: float = 1.0, **look: Any) -> None:
        self.figure.text(_LEFT, self.top, text, fontsize=size, va="top", **look)
        self.top -= gap * _LINE

    def paragraph(self, text: str, *, size: float = 9.0, columns: int = _COLUMNS, **look: Any) -> None:
        # An equation stays on one line.
        for line in textwrap.wrap(text.replace(" = ", "\u00a0=\u00a0"), columns):
            self.line(line, size=size, gap=size / 8.5, **look)

    def heading(self, text: str) -> None:
        self.top -= 0.6 * _LINE
        self.line(text, size=11, weight="bold", gap=1.35, gid="heading")

    def pairs(self, pairs: Sequence[tuple[str, str]], *, size: float = 9.0) -> None:
        for name, value in pairs:
            self.figure.text(_LEFT + 0.17, self.top, value, fontsize=size, va="top")
            self.line(name, size=size, gid="label")

    def bullets(self, items: Sequence[str], *, between: float = 0.0) -> None:
        for item in items:
            first, *rest = textwrap.wrap(item, _COLUMNS)
            self.line(f"•  {first}", size=9.0)
            for line in rest:
                self.line(f"    {line}", size=9.0)
            self.top -= between * _LINE

    def rows(self, rows: Sequence[str]) -> None:
        """All rows, or the first and the last ones if there are too many for the page. The JSON file has all."""
        shown = list(rows)
        if len(rows) > _MOST_ROWS:
            half = _MOST_ROWS // 2
            left_out = f"… {len(rows) - 2 * half} more, in the JSON file …"
            shown = [*rows[:half], left_out, *rows[-half:]]
        for row in shown:
            first, *rest = textwrap.wrap(row, _COLUMNS + 18) or [""]
            self.line(first, size=7.8, gap=0.85)
            for line in rest:
                self.line(f"    {line}", size=7.8, gap=0.85)
