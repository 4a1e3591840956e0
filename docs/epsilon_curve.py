"""Draws accuracy against ε: forecasts of benchmarks/rehearsal.py, and results of benchmarks/defaults.py as dots."""

import json
import math
import statistics
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FormatStrFormatter, PercentFormatter

from dpal.reports.figures import RC, line_style

ROOT = Path(__file__).parent
RESULTS = ROOT.parent / "benchmarks" / "results"
DATASETS = {"blood cells, 2,500 labels": 0, "skin lesions, 2,500 labels": 1}
STYLES = {"cut": "-", "random": ":"}


def main() -> None:
    forecasts = json.loads((RESULTS / "rehearsal-epsilon-cpu2.json").read_text())[
        "forecasts"
    ]
    runs = json.loads((RESULTS / "defaults-cpu2.json").read_text())["runs"]
    epsilons = sorted({forecast["epsilon"] for forecast in forecasts})
    with mpl.rc_context(rc=RC):
        figure = Figure(figsize=(6, 3.6), layout="constrained")
        axes = figure.subplots()
        for dataset, colour in DATASETS.items():
            for labels, style in STYLES.items():
                points = [
                    forecast["accuracy"]
                    for epsilon in epsilons
                    for forecast in forecasts
                    if (forecast["dataset"], forecast["labels"], forecast["epsilon"])
                    == (dataset, labels, epsilon)
                ]
                axes.errorbar(
                    epsilons,
                    [statistics.fmean(found) for found in points],
                    yerr=[
                        statistics.stdev(found) / math.sqrt(len(found))
                        for found in points
                    ],
                    linestyle=style,
                    capsize=3,
                    label=f"{dataset}: {labels}",
                    color=line_style(colour)["color"],
                )
                real = [
                    run
                    for run in runs
                    if (run["dataset"], run["labels"]) == (dataset, labels)
                ]
                axes.plot(
                    [run["epsilon"] for run in real],
                    [run["accuracy"] for run in real],
                    "o" if labels == "cut" else "x",
                    color=line_style(colour)["color"],
                )
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(FixedLocator(epsilons))
        axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_xlabel("ε of the campaign")
        axes.set_ylabel("accuracy: lines forecast, marks measured")
        axes.legend(loc="center right")
        figure.savefig(ROOT / "images" / "epsilon.png")


if __name__ == "__main__":
    main()
