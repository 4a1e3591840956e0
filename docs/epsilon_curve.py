"""Draws accuracy against ε from the committed results of benchmarks/defaults.py."""

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
FILES = ("defaults-cpu2.json", "defaults-epsilon-cpu2.json")
DATASETS = {"blood cells, 2,500 labels": 0, "skin lesions, 2,500 labels": 1}
STYLES = {"cut": "-", "random": ":"}


def main() -> None:
    runs = [
        run
        for file in FILES
        for run in json.loads((RESULTS / file).read_text())["runs"]
    ]
    epsilons = sorted({run["epsilon"] for run in runs})
    with mpl.rc_context(rc=RC):
        figure = Figure(figsize=(6, 3.6), layout="constrained")
        axes = figure.subplots()
        for dataset, colour in DATASETS.items():
            for labels, style in STYLES.items():
                points = [
                    [
                        run["accuracy"]
                        for run in runs
                        if (run["dataset"], run["labels"], run["epsilon"])
                        == (dataset, labels, epsilon)
                    ]
                    for epsilon in epsilons
                ]
                errors = [
                    statistics.stdev(found) / math.sqrt(len(found)) for found in points
                ]
                axes.errorbar(
                    epsilons,
                    [statistics.fmean(found) for found in points],
                    yerr=errors,
                    linestyle=style,
                    capsize=3,
                    label=f"{dataset}: {labels}",
                    **line_style(colour),
                )
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(FixedLocator(epsilons))
        axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_xlabel("ε of the campaign")
        axes.set_ylabel("accuracy on the held-out set")
        axes.legend(loc="lower right")
        figure.savefig(ROOT / "images" / "epsilon.png")


if __name__ == "__main__":
    main()
