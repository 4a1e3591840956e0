"""Table I with all datasets, models and methods, and its most important rows next to our own."""

from dpal.experiments.methods import (
    ACQUISITIONS,
    everything,
    everything_but_copies,
    own_columns,
    paper_methods,
    random,
    random_al,
    random_naive_al,
    with_laplace,
    with_threshold,
    without_privacy,
)
from dpal.experiments.runs import Experiment, Row

_MAIN = "cifar10-resnet9"
# The margin between the two likeliest classes has no meaning where a record may have several labels.
_SEVERAL_LABELS = tuple(name for name in ACQUISITIONS if name != "minimum-margin")

HEADLINE = Experiment(
    name="headline",
    title="CIFAR-10, ResNet-9, ε = 8, δ = 1e-5, 25,000 labels",
    rows=(
        random(_MAIN),
        random_naive_al(_MAIN),
        random_al(_MAIN),
        with_laplace(_MAIN),
        without_privacy(_MAIN),
        with_threshold(_MAIN),
        everything(_MAIN),
    ),
)
OWN = Experiment(
    name="own-columns",
    title="What is ours, each alone and all together (CIFAR-10, ResNet-9, ε = 8)",
    rows=own_columns(_MAIN),
)
TABLE1 = Experiment(
    name="table1",
    title="The paper's Table I",
    rows=(
        *paper_methods(_MAIN),
        *paper_methods("bloodcell-resnet9"),
        *paper_methods("cifar10-eq-resnet9"),
        *paper_methods("retinaloct-resnet9"),
        *paper_methods("chexpert-nfnet", _SEVERAL_LABELS),
        *paper_methods("snli-bert"),
    ),
)
_EQUIVARIANT = "cifar10-eq-resnet9"
EQUIVARIANT = Experiment(
    name="equivariant",
    title="CIFAR-10, Eq-ResNet-9, ε = 8, and the noise of the paper's code",
    rows=(
        random(_EQUIVARIANT),
        random_al(_EQUIVARIANT),
        # The paper's code divides the noise of the first phase by the clip norm, here 2, and Random has no other phase.
        # A plan for this ε has half the noise.
        random(
            _EQUIVARIANT,
            name="random-half-noise",
            title="Random, half the noise (ε = 19.73)",
            plan={"target_epsilon": 19.7306},
        ),
        with_laplace(_EQUIVARIANT),
        with_threshold(_EQUIVARIANT),
        everything_but_copies(_EQUIVARIANT),
    ),
    seeds=(1, 2, 3),
)
_PAPER_DELTA = {"target_delta": 1 / 25_000}
DELTA = Experiment(
    name="delta",
    title="The paper's δ = 1/25,000 instead of 1e-5 (CIFAR-10, ResNet-9, ε = 8)",
    rows=(
        random(_MAIN, name="random-paper-delta", plan=_PAPER_DELTA),
        Row(name="random-al-paper-delta", title="Random AL", task=_MAIN, plan=_PAPER_DELTA),
        with_laplace(_MAIN, name="entropy-laplace-paper-delta", plan=_PAPER_DELTA),
        Row(
            name="entropy-none-paper-delta",
            title="Entropy, selection not private",
            task=_MAIN,
            plan={"selection": "none", **_PAPER_DELTA},
        ),
    ),
)
SKIN = Experiment(
    name="skin-lesions",
    title="Skin lesions, ResNet-9, balanced accuracy (not in the paper)",
    rows=(
        random("skinlesion-resnet9"),
        random_al("skinlesion-resnet9"),
        with_laplace("skinlesion-resnet9"),
        with_threshold("skinlesion-resnet9"),
        everything("skinlesion-resnet9"),
    ),
    seeds=(1, 2, 3),
    also=("accuracy",),
)
