"""Scores of all records and of the selected ones, query by query. Simulations only: scores are private."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dpal.reports.figures import COLOURS, RC

WARNING = "SIMULATION ONLY: scores are private. They are shown because nothing in this run is private."


def plot_histograms(
    queries: Sequence[tuple[NDArray[np.float64], NDArray[np.bool_]]], path: Path, *, acquisition: str
) -> None:
    """One panel per query, in the style of the paper's figure."""
    with mpl.rc_context(rc=RC):
        figure = Figure(figsize=(max(4.2, 3.0 * len(queries)), 3.2), layout="constrained")
        panels = np.atleast_1d(figure.subplots(1, len(queries), sharex=True))
        highest = max(float(scores.max(initial=0.0)) for scores, _ in queries) or 1.0
        edges = np.linspace(0.0, highest, 31)
        for number, (axes, (scores, selected)) in enumerate(zip(panels, queries, strict=True), start=1):
            axes.hist(scores, bins=edges, density=True, color="0.75", label="all records")
            if selected.any():
                axes.hist(
                    scores[selected],
                    bins=edges,
                    density=True,
                    histtype="step",
                    color=COLOURS[1],
                    label="selected",
                    linewidth=1.6,
                )
            axes.set_title(f"query {number}")
            axes.set_xlabel(acquisition)
        panels[0].set_ylabel("density")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        figure.suptitle(WARNING, color="red", fontsize=8)
        figure.savefig(path)
