"""What a run is: one row of a table, at one scale, with one seed. Its description is frozen and has a hash."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dpal.experiments.scales import FULL, SCALES
from dpal.experiments.tasks import TASKS, Task
from dpal.training.settings import Augmentation, TrainingSettings

# The average is kept in every run, whether or not the run selects and predicts with it: it costs nothing.
AVERAGE_DECAY = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A method on a task. Unless it says otherwise, it does as the paper does: Rényi, basic accounting, no average."""

    name: str
    title: str
    task: str
    # Arguments of dpal.plan and of TrainingSettings, on top of the task's.
    plan: Mapping[str, Any] = field(default_factory=dict[str, Any])
    training: Mapping[str, Any] = field(default_factory=dict[str, Any])
    acquisition: str = "entropy"
    # Everything is labelled and trained on at once.
    at_once: bool = False
    # The labelling budget as a multiple of the task's; all group sizes change in proportion.
    labels: float = 1.0
    # Two phases: the initial set, and everything else in one query. With fewer labels the batch shrinks in proportion.
    one_query: bool = False
    # The decay of the average that selects and predicts; None: the weights themselves.
    average: float | None = None
    # Only plan, to measure the time, with this many training phases.
    plan_only_phases: int | None = None

    @property
    def full_name(self) -> str:
        return f"{self.task}.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A row at a scale with a seed."""

    row: Row
    scale: str = FULL
    seed: int

    @property
    def name(self) -> str:
        return f"{self.row.full_name}.seed-{self.seed}"

    @property
    def task(self) -> Task:
        return SCALES[self.scale].changed(TASKS[self.row.task])

    def plan_arguments(self) -> dict[str, Any]:
        """The arguments of dpal.plan, all sizes filled in."""
        task, row = self.task, self.row
        sizes, batch_size = [task.initial_size, *task.query_sizes], task.batch_size
        if row.one_query:
            sizes, batch_size = _in_phases(task, 2), max(1, round(task.batch_size * row.labels))
        sizes = [max(1, round(size * row.labels)) for size in sizes]
        epochs = task.epochs_of_campaign / len(sizes)
        if row.at_once:
            sizes, epochs = [sum(sizes)], task.epochs
        if "epochs" in row.plan:
            # A row states epochs for the task at full scale.
            epochs = row.plan["epochs"] * task.epochs / TASKS[row.task].epochs
        if row.plan_only_phases is not None:
            sizes = _in_phases(task, row.plan_only_phases)
        return {
            "target_epsilon": 8.0,
            "target_delta": task.target_delta,
            "pool_size": task.pool_size,
            "initial_size": sizes[0],
            "query_sizes": sizes[1:],
            "batch_size": min(batch_size, sizes[0]),
            "planner": "no-al" if row.at_once else "step-amplification",
            "selection": "random",
            "accountant": "rdp",
            "accounting": "basic",
            **row.plan,
            "epochs": epochs,
        }

    def training(self) -> TrainingSettings:
        """How it is trained."""
        return TrainingSettings(**self._stated_training())

    def _stated_training(self) -> dict[str, Any]:
        """What the task and the row say about training; the rest are defaults."""
        task = self.task
        return {
            "optimizer": task.optimizer,
            "learning_rate": task.learning_rate,
            "max_grad_norm": task.max_grad_norm,
            "average": self.row.average,
            **self.row.training,
        }

    def model_options(self) -> dict[str, Any]:
        """The options of the model, with dropout where BALD needs it."""
        task = self.task
        return {**task.model_options, **({"dropout": task.dropout} if self.row.acquisition == "bald" else {})}

    def description(self) -> dict[str, Any]:
        """Everything that decides the result, apart from the machine it runs on."""
        task = self.task
        return {
            "row": self.row.name,
            "task": task.name,
            "scale": self.scale,
            "seed": self.seed,
            "data": {
                "source": task.source,
                "train": dict(task.train),
                "test": dict(task.test),
                "test_size": task.test_size,
            },
            "plan": self.plan_arguments(),
            "training": {
                name: asdict(value) if isinstance(value, Augmentation) else value
                for name, value in self._stated_training().items()
            },
            "measured_average": self.row.average or AVERAGE_DECAY,
            "model": {"name": task.model, "options": self.model_options()},
            "acquisition": self.row.acquisition,
            "plan_only": self.row.plan_only_phases is not None,
        }

    def hash(self) -> str:
        """The hash of the description, which tells results of these settings from others."""
        text = json.dumps(self.description(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def _in_phases(task: Task, phases: int) -> list[int]:
    """The task's labels spread over another number of phases: the initial set, and equal queries."""
    left = task.labelling_budget - task.initial_size
    return [task.initial_size, *(left // (phases - 1) for _ in range(phases - 1))]


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
