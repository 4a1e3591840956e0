"""How several campaigns of each kind ended: one dot per campaign, the mean, and its standard error."""

import math
import statistics
from collections.abc import Mapping, Sequence

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from dpal.reports.figures import RC, line_style


def final_figure(values: Mapping[str, Sequence[float]], label: str) -> Figure:
    """A column per kind; `values` are shares from 0 to 1."""
    with mpl.rc_context(rc=RC):
        figure = Figure(figsize=(4.8, 3.4), layout="constrained")
        axes = figure.subplots()
        for place, (name, found) in enumerate(values.items()):
            color = line_style(place)["color"]
            axes.plot([place - 0.15] * len(found), found, "o", color=color, alpha=0.5)
            mean = statistics.fmean(found)
            error = statistics.stdev(found) / math.sqrt(len(found)) if len(found) > 1 else 0.0
            axes.errorbar([place + 0.1], [mean], yerr=[error], fmt="s", color=color, capsize=5)
            axes.annotate(f"{name}\n{mean:.1%} ± {error:.1%}", (place + 0.18, mean), va="center")
        axes.set_xticks(range(len(values)), list(values))
        axes.set_xlim(-0.5, len(values) - 0.2)
        axes.set_ylabel(label)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        return figure
