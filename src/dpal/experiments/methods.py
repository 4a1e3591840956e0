"""The methods of Table I as rows, and our own: what each changes against the paper's entropy with Laplace."""

from dataclasses import replace
from typing import Any

from dpal.experiments.runs import Row
from dpal.training.settings import Augmentation

SELECTION_EPSILON = 2.0
ACQUISITIONS = ("least-confidence", "minimum-margin", "entropy", "bald")
_TITLES = {
    "least-confidence": "Least confidence",
    "minimum-margin": "Minimum margin",
    "entropy": "Entropy",
    "bald": "MC BALD",
}
_LAPLACE = {"selection": "laplace", "selection_epsilon": SELECTION_EPSILON}
_THRESHOLD = {"selection": "threshold", "selection_epsilon": SELECTION_EPSILON, "accounting": "branch"}
_COPIES = {"augmentation": Augmentation(copies=4, flip=True, crop=4)}


def random(task: str, *, name: str = "random", title: str = "Random", **changes: Any) -> Row:
    """Plain private training on a random subset: the paper's main baseline."""
    return Row(name=name, title=title, task=task, at_once=True, **changes)


def random_naive_al(task: str) -> Row:
    return Row(name="random-naive-al", title="Random naive AL", task=task, plan={"planner": "naive"})


def random_al(task: str) -> Row:
    return Row(name="random-al", title="Random AL", task=task)


def without_privacy(task: str, acquisition: str = "entropy") -> Row:
    """The training is private, the selection is not: an upper bound."""
    return Row(
        name=f"{acquisition}-none",
        title=f"{_TITLES[acquisition]}, selection not private",
        task=task,
        plan={"selection": "none"},
        acquisition=acquisition,
    )


def with_laplace(task: str, acquisition: str = "entropy", *, name: str = "", title: str = "", **changes: Any) -> Row:
    """The paper's method. `plan` in the changes goes on top of its plan."""
    plan = {**_LAPLACE, **changes.pop("plan", {})}
    return Row(
        name=name or f"{acquisition}-laplace",
        title=title or f"{_TITLES[acquisition]}, Laplace",
        task=task,
        plan=plan,
        acquisition=acquisition,
        **changes,
    )


def with_threshold(task: str) -> Row:
    """Threshold sampling with branch accounting, and nothing else of ours."""
    return Row(name="entropy-threshold", title="Entropy, threshold sampling", task=task, plan=_THRESHOLD)


def everything(task: str) -> Row:
    """All of ours together, with twice the paper's learning rate and an average over a longer time."""
    return Row(
        name="ours",
        title="Ours, everything on",
        task=task,
        plan={**_THRESHOLD, "planner": "optimised", "accountant": "pld"},
        training={**_COPIES, "learning_rate": 2e-3},
        average=0.995,
    )


def everything_but_copies(task: str) -> Row:
    """All of ours but augmented copies, at the task's own learning rate."""
    return replace(everything(task), name="ours-one-copy", title="Ours, everything on but copies", training={})


def everything_at_once(task: str) -> Row:
    """Ours without active learning, with about as many steps: what selection is worth when all else is on."""
    return random(
        task,
        name="random-ours",
        title="Random, everything on but active learning",
        plan={"accountant": "pld", "epochs": 232.0},
        training={**_COPIES, "learning_rate": 2e-3},
        average=0.995,
    )


def paper_methods(task: str, acquisitions: tuple[str, ...] = ACQUISITIONS) -> tuple[Row, ...]:
    """The rows of Table I, in its order."""
    return (
        random(task),
        random_naive_al(task),
        random_al(task),
        *(without_privacy(task, each) for each in acquisitions),
        *(with_laplace(task, each) for each in acquisitions),
    )


def own_columns(task: str) -> tuple[Row, ...]:
    """The paper's entropy with Laplace, each of our changes alone, and all together."""
    return (
        with_laplace(task),
        with_laplace(task, name="own-pld", title="PLD accounting", plan={"accountant": "pld"}),
        with_threshold(task),
        with_laplace(task, name="own-optimised", title="Optimised plan", plan={"planner": "optimised"}),
        with_laplace(task, name="own-average", title="Average of the weights selects", average=0.99),
        with_laplace(task, name="own-copies", title="Four augmented copies", training=_COPIES),
        with_laplace(task, name="own-learning-rate", title="Learning rate 2e-3", training={"learning_rate": 2e-3}),
        random(task, name="random-pld", title="Random, PLD accounting", plan={"accountant": "pld"}),
        everything_at_once(task),
        everything(task),
    )
