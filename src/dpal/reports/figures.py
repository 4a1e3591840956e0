"""The look of every figure, colour-blind safe (Okabe and Ito) and readable at column width; figures inside pages."""

import io
from collections.abc import Iterable
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

RC: Any = {
    "figure.dpi": 150,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
}


def line_style(index: int) -> dict[str, Any]:
    """The colour and the marker of the line with this number; they start again after seven."""
    return {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}


def as_svg(figure: Figure) -> str:
    """The figure as SVG text for use inside HTML, always the same for the same figure."""
    buffer = io.StringIO()
    with mpl.rc_context(rc={"svg.hashsalt": "dpal", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def honest_limits(values: Iterable[float], reference: float | None) -> tuple[float, float]:
    """Limits of an axis for shares: from what needs no model (or the lowest value, if it is lower) up to 1.

    An axis that ends where the values end makes a steep rise of a tenth of a point. Without a reference, all of it.
    """
    low = 0.0 if reference is None else min([reference, *values])
    return low - 0.04 * (1.0 - low), 1.0
