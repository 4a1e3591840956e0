"""The paper's ablations, all on CIFAR-10 with ResNet-9 and entropy, and the time that planning takes."""

from typing import Any

from dpal.experiments.methods import random, random_al, with_laplace, with_threshold, without_privacy
from dpal.experiments.runs import HISTOGRAM, PLANNING_TIME, SELECTION, Experiment, Row

_TASK = "cifar10-resnet9"


def _split(selection_epsilon: float) -> Row:
    if selection_epsilon == 0:
        return random_al(_TASK)
    if selection_epsilon == 2:
        return with_laplace(_TASK)
    return with_laplace(
        _TASK,
        name=f"entropy-laplace-selection-epsilon-{selection_epsilon:g}",
        title=f"Entropy, Laplace, ε_sel = {selection_epsilon:g}",
        plan={"selection_epsilon": selection_epsilon},
    )


def _labels(budget: int) -> tuple[Row, Row]:
    if budget == 25_000:
        return random(_TASK), with_laplace(_TASK)
    share = budget / 25_000
    return (
        random(_TASK, name=f"random-{budget}", title=f"Random, {budget:,} labels", labels=share),
        with_laplace(
            _TASK, name=f"entropy-laplace-{budget}", title=f"Entropy, Laplace, {budget:,} labels", labels=share
        ),
    )


def _budget(epsilon: float, selection_epsilon: float) -> tuple[Row, Row]:
    if epsilon == 8:
        return random(_TASK), with_laplace(_TASK)
    plan: dict[str, Any] = {"target_epsilon": epsilon}
    return (
        random(_TASK, name=f"random-epsilon-{epsilon:g}", title=f"Random, ε = {epsilon:g}", plan=plan),
        with_laplace(
            _TASK,
            name=f"entropy-laplace-epsilon-{epsilon:g}",
            title=f"Entropy, Laplace, ε = {epsilon:g}",
            plan={**plan, "selection_epsilon": selection_epsilon},
        ),
    )


def _planner(planner: str, title: str) -> Row:
    return with_laplace(_TASK, name=f"entropy-laplace-{planner}", title=title, plan={"planner": planner})


def _mechanism(selection: str, title: str) -> Row:
    # Gaussian noise has no pure ε, which basic accounting adds up.
    accounting = {} if selection == "exponential" else {"accounting": "renyi"}
    return with_laplace(_TASK, name=f"entropy-{selection}", title=title, plan={"selection": selection, **accounting})


def _planning_time(task: str, phases: int) -> Row:
    return Row(
        name=f"planning-{phases}-phases",
        title=f"{phases} phases",
        task=task,
        plan={"selection": "laplace", "selection_epsilon": 2.0},
        plan_only_phases=phases,
    )


SPLIT = Experiment(
    name="split",
    title="The share of ε that selection gets",
    rows=(
        random(_TASK),
        without_privacy(_TASK),
        *(_split(selection_epsilon) for selection_epsilon in (2, 0, 1, 3, 4, 0.5)),
    ),
)
LABELS = Experiment(
    name="labels",
    title="The labelling budget",
    rows=tuple(row for budget in (25_000, 15_000, 20_000, 30_000, 35_000, 40_000, 45_000) for row in _labels(budget)),
    remark="Query sizes keep their proportions; the paper does not say its own.",
)
BUDGET = Experiment(
    name="budget",
    title="The overall ε",
    rows=tuple(row for pair in ((8, 2), (3, 1), (5, 1), (16, 4)) for row in _budget(*pair)),
)
ALTERNATIVES = Experiment(
    name="alternatives",
    title="Alternatives to step amplification",
    rows=(
        with_laplace(_TASK),
        _planner("noise-reduction", "Noise reduction"),
        _planner("continual", "Continual learning"),
    ),
)
MECHANISMS = Experiment(
    name="mechanisms",
    title="Mechanisms of private selection, ε_sel = 2",
    rows=(
        with_laplace(_TASK),
        with_threshold(_TASK),
        _mechanism("gaussian", "Entropy, Gaussian"),
        _mechanism("sampled-gaussian", "Entropy, subsampled Gaussian"),
        _mechanism("exponential", "Entropy, exponential mechanism"),
    ),
    shows=SELECTION,
    remark="All at the same share of the whole promise, each in a campaign of its own. The paper's figure has ε_sel "
    "from 1 to 10, and Laplace noise without its clip at 0.8 as well; neither is here.",
)
SELECTION_QUALITY = Experiment(
    name="selection-accuracy",
    title="How much of the true top was selected",
    rows=(with_laplace(_TASK), with_threshold(_TASK), without_privacy(_TASK)),
    shows=SELECTION,
)
HISTOGRAMS = Experiment(
    name="histograms",
    title="Entropies of the pool and of what was selected",
    rows=(with_laplace(_TASK), with_threshold(_TASK)),
    shows=HISTOGRAM,
    seeds=(1,),
)
PLANNING = Experiment(
    name="planning-time",
    title="Seconds of step amplification",
    rows=tuple(
        _planning_time(task, phases)
        for task in ("cifar10-resnet9", "bloodcell-resnet9", "snli-bert")
        for phases in (2, 3, 4, 5, 6)
    ),
    shows=PLANNING_TIME,
    seeds=(1,),
)
