"""The private cut against random labels, everything else alike: the choice alone differs."""

from dpal.experiments.runs import Experiment, Row
from dpal.training.settings import Augmentation

_TASK = "cifar10-resnet9"
# Steps in all, whatever the number of labels: 500 and 1,220.
_EPOCHS, _LONG_EPOCHS = 58.51428571428571, 142.77485714285714
# Learning rates, acquisition and the shares of scouting were chosen on 10,000 records of the training set.
_TRAINING = {"learning_rate": 2e-3}
_LONG_TRAINING = {"learning_rate": 1e-3}
_COPIES = {**_TRAINING, "augmentation": Augmentation(copies=4, flip=True, crop=4)}


def _pair(
    suffix: str = "", words: str = "", *, labels: float = 1.0, copies: bool = False, long: bool = False
) -> tuple[Row, Row]:
    """Random labels and the cut, with this part of the labelling budget."""
    scouting = {"scouting_epsilon_share": 0.35} if long else {}
    random, cut = (
        Row(
            name=f"{name}{suffix}",
            title=f"{title}{words}",
            task=_TASK,
            plan={
                "planner": planner,
                "selection": "cut",
                "accountant": "pld",
                "accounting": "branch",
                "epochs": _LONG_EPOCHS if long else _EPOCHS,
                **scouting,
            },
            training=_COPIES if copies else _LONG_TRAINING if long else _TRAINING,
            acquisition="minimum-margin",
            one_query=True,
            labels=labels,
            average=0.99,
        )
        for name, title, planner in (
            ("random-at-once", "Random labels", "no-al"),
            ("margin-cut", "Minimum margin, private cut", "scouting"),
        )
    )
    return random, cut


CUT = Experiment(
    name="cut",
    title="Selections inside: the private cut against random labels (CIFAR-10, ResNet-9, ε = 8, 25,000 labels)",
    rows=(*_pair("-long", ", 1,220 steps", long=True), *_pair(), *_pair("-copies", ", four copies", copies=True)),
)
CUT_LABELS = Experiment(
    name="cut-labels",
    title="The private cut against random labels, with fewer labels",
    rows=tuple(
        row
        for labels in (20_000, 15_000, 10_000)
        for row in _pair(f"-{labels}", f", {labels:,} labels", labels=labels / 25_000)
    ),
    seeds=(1, 2, 3),
)
