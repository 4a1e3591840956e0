"""The pictures of the selection benchmark."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from dpal.reports.figures import COLOURS, MARKERS, RC


def draw(folder: Path, comparison: Sequence[dict[str, Any]], equal: Sequence[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(RC):
        _mechanisms(folder / "selection-mechanisms.png", comparison)
        _gains(folder / "selection-gains.png", equal)


def _mechanisms(path: Path, comparison: Sequence[dict[str, Any]]) -> None:
    shapes = list(dict.fromkeys(row["shape"] for row in comparison))
    names = [name for name in dict.fromkeys(row["mechanism"] for row in comparison) if name != "threshold, mean score"]
    figure, axes = plt.subplots(2, 3, figsize=(9.5, 5.6), sharex=True, sharey=True)
    for axis, shape in zip(axes.flat, shapes, strict=True):
        for index, name in enumerate(names):
            rows = [row for row in comparison if (row["shape"], row["mechanism"]) == (shape, name)]
            axis.errorbar(
                [row["selection_epsilon"] for row in rows],
                [100 * row["accuracy"] for row in rows],
                [100 * row["deviation"] for row in rows],
                color=COLOURS[index],
                marker=MARKERS[index],
                label=name,
            )
        axis.set_title(f"scores: {shape}", fontsize=9)
    for axis in axes[1]:
        axis.set_xlabel("selection ε over four phases")
    for axis in axes[:, 0]:
        axis.set_ylabel("accuracy (%)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=4)
    figure.suptitle("First selection, 10,000 of 40,000: how much of the true top is found", fontsize=10)
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    figure.savefig(path)
    plt.close(figure)


def _gains(path: Path, equal: Sequence[dict[str, Any]]) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(7.5, 3.4))
    titles = {"mean_score": "mean score, over the pool's", "accuracy": "accuracy, over random (points)"}
    for axis, (measure, title) in zip(axes, titles.items(), strict=True):
        rows = [row for row in equal if (row["shape"], row["measure"]) == ("paper", measure)]
        scale = 100 if measure == "accuracy" else 1
        for offset, (key, name) in enumerate((("laplace_gain", "Laplace"), ("threshold_gain", "threshold sampling"))):
            places = [row["phase"] + (offset - 0.5) * 0.38 for row in rows]
            bars = axis.bar(places, [scale * row[key] for row in rows], 0.36, color=COLOURS[offset], label=name)
            axis.bar_label(bars, fmt="%.1f" if measure == "accuracy" else "%.3f", fontsize=7, padding=1)
        axis.set_xticks([row["phase"] for row in rows])
        axis.set_xlabel("selection phase")
        axis.set_title(f"Gain in {title}", fontsize=9)
        axis.margins(y=0.12)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=2)
    figure.suptitle("At ε 8 for every group and about the same training: the paper's four selections", fontsize=10)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(path)
    plt.close(figure)
