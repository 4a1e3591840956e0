"""How large a run is: the paper's size, a laptop's, or just enough to see that everything works."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from dpal.experiments.tasks import STAND_IN, Task

FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How it changes every task, and the words shown with every result at this scale."""

    words: str
    changed: Callable[[Task], Task]


def _laptop(task: Task) -> Task:
    """Minutes per run on a laptop; accuracies are far below the paper's and only compare with each other."""
    small = 25 if task.pool_size > 20_000 else 10

    def smaller(size: int) -> int:
        return max(1, size // small)

    return replace(
        task,
        pool_size=smaller(task.pool_size),
        initial_size=smaller(task.initial_size),
        query_sizes=tuple(smaller(size) for size in task.query_sizes),
        batch_size=smaller(task.batch_size),
        epochs=task.epochs / 10,
        epochs_of_campaign=task.epochs_of_campaign / 10,
        test_size=1_000,
    )


def _smallest(task: Task) -> Task:
    return replace(STAND_IN, name=task.name, title=f"{STAND_IN.title} instead of {task.title}")


SCALES: dict[str, Scale] = {
    FULL: Scale(words="the paper's sizes", changed=lambda task: task),
    "laptop": Scale(
        words="SMALL SCALE for a laptop: fewer records and epochs; not comparable with the paper", changed=_laptop
    ),
    "smallest": Scale(
        words="SMALLEST SCALE: a few digits and a tiny model instead of the real thing; it only shows that it runs",
        changed=_smallest,
    ),
}
