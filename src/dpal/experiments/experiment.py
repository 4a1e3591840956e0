"""An experiment: rows that are shown together, and how."""

from dataclasses import dataclass

from dpal.experiments.runs import Row

# What a table shows of its rows.
METRIC, SELECTION, HISTOGRAM, PLANNING_TIME = "metric", "selection", "histogram", "planning-time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Named rows, the most important first."""

    name: str
    title: str
    rows: tuple[Row, ...]
    shows: str = METRIC
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    # Further metrics of the weights, where the task's own does not say enough.
    also: tuple[str, ...] = ()
    remark: str = ""
