"""Tables of results as text, for a terminal and for docs/results.md."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from dpal.experiments.paper_numbers import PAPER, PLANNING_SECONDS, SELECTION_ACCURACY
from dpal.experiments.results import Results, figure, finished, metric_of
from dpal.experiments.runs import HISTOGRAM, PLANNING_TIME, SELECTION, Experiment, Row
from dpal.experiments.scales import FULL
from dpal.experiments.tasks import TASKS

_LEVELS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Table:
    """Headings and rows, all text."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        lines = [self.headings, tuple("---" for _ in self.headings), *self.rows]
        return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def table_of(experiment: Experiment, results: Results, *, scale: str = FULL, seeds: Sequence[int] = ()) -> Table:
    """The results next to the paper's numbers; a cell without a result says which run is missing."""
    make = {SELECTION: _selection, HISTOGRAM: _histogram, PLANNING_TIME: _planning}.get(experiment.shows, _metric)
    documents = {
        row.full_name: finished(results, row, scale=scale, seeds=tuple(seeds) or experiment.seeds)
        for row in experiment.rows
    }
    return make(experiment, documents)


def _missing(row: Row) -> str:
    return f"not run: {row.full_name}"


def _metric(experiment: Experiment, results: dict[str, list[dict[str, Any]]]) -> Table:
    several = len({row.task for row in experiment.rows}) > 1
    rows: list[tuple[str, ...]] = []
    for row in experiment.rows:
        documents = results[row.full_name]
        metric = metric_of(row, documents)
        paper = PAPER.get(row.full_name)
        rows.append(
            (
                f"{TASKS[row.task].title}: {row.title}" if several else row.title,
                "–" if paper is None else f"{paper[0]:.2f} ± {paper[1]:.2f}",
                str(figure(documents, metric, "weights") or _missing(row)),
                str(figure(documents, metric, "average") or ""),
                *(str(figure(documents, name, "weights") or "") for name in experiment.also),
                _mean([document["labels"] for document in documents]),
                _mean([document["plan"]["steps"] for document in documents]),
            )
        )
    also = (name.replace("_", " ") for name in experiment.also)
    headings = ("", "paper", "weights", "average", *also, "labels", "steps")
    return Table(headings, tuple(rows))


def _mean(values: list[float]) -> str:
    return f"{mean(values):,.0f}" if values else ""


def _selection(experiment: Experiment, results: dict[str, list[dict[str, Any]]]) -> Table:
    rows: list[tuple[str, ...]] = []
    for row in experiment.rows:
        documents = results[row.full_name]
        if not documents:
            rows.append((row.title, _missing(row), *[""] * 7))
            continue
        for index, first in enumerate(documents[0]["selections"]):
            over_seeds = [document["selections"][index] for document in documents]
            paper = SELECTION_ACCURACY.get(row.full_name, ())
            rows.append(
                (
                    f"{row.title}, selection {index + 1}",
                    f"{first['wanted']:,} of {first['unlabelled']:,}",
                    f"{paper[index]:.1f}%" if index < len(paper) else "–",
                    f"{100 * mean(selection['accuracy'] for selection in over_seeds):.1f}%",
                    f"{100 * mean(selection['of_a_random_one'] for selection in over_seeds):.1f}%",
                    f"{mean(selection['intersection_over_union'] for selection in over_seeds):.3f}",
                    f"{mean(selection['mean_squared_error'] for selection in over_seeds):.3f}",
                    f"{mean(selection['mean_score'] for selection in over_seeds):.3f}",
                    f"{mean(selection['pool_mean_score'] for selection in over_seeds):.3f}",
                )
            )
    headings = ("", "wanted", "paper", "accuracy", "by chance", "IoU", "MSE", "mean score", "pool's")
    return Table(headings, tuple(rows))


def _histogram(experiment: Experiment, results: dict[str, list[dict[str, Any]]]) -> Table:
    rows: list[tuple[str, ...]] = []
    for row in experiment.rows:
        documents = results[row.full_name]
        if not documents:
            rows.append((row.title, _missing(row), ""))
            continue
        for index, selection in enumerate(documents[0]["selections"]):
            histogram = selection["histogram"]
            name = f"{row.title}, selection {index + 1}"
            rows.append((name, _bars(histogram["pool"]), _bars(histogram["taken"])))
    return Table(("", "scores of the pool, from 0 to 1", "scores of what was taken"), tuple(rows))


def _bars(counts: list[int]) -> str:
    highest = max(*counts, 1)
    return "".join(_LEVELS[min(len(_LEVELS) - 1, count * len(_LEVELS) // (highest + 1))] for count in counts)


def _planning(experiment: Experiment, results: dict[str, list[dict[str, Any]]]) -> Table:
    rows: list[tuple[str, ...]] = []
    for row in experiment.rows:
        documents = results[row.full_name]
        seconds = [measured for document in documents for measured in document["planning_seconds"]]
        rows.append(
            (
                f"{TASKS[row.task].title}: {row.title}",
                f"{PLANNING_SECONDS[row.full_name]:.1f}",
                f"{mean(seconds):.3f}" if seconds else _missing(row),
            )
        )
    return Table(("", "paper", "dpal"), tuple(rows))
