"""Table I: all datasets, models and methods; and the rows of it that matter most, with our own beside them."""

from dpal.experiments.experiment import Experiment
from dpal.experiments.methods import (
    ACQUISITIONS,
    everything,
    own_columns,
    paper_methods,
    random,
    random_al,
    random_naive_al,
    with_laplace,
    with_threshold,
    without_privacy,
)

_MAIN = "cifar10-resnet9"
# The margin between the two likeliest classes has no meaning where several labels hold at once.
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
_THIRD = "cifar10-eq-resnet9-third"
EQUIVARIANT = Experiment(
    name="equivariant",
    title="CIFAR-10, Eq-ResNet-9, ε = 8, a third of the paper's epochs",
    rows=(
        random(_THIRD),
        random_al(_THIRD),
        # Its code divides the noise of the first phase, and Random has no other, by the clip norm of 2. Noise of half
        # the size is what a plan for this ε has.
        random(_THIRD, name="random-half-noise", title="Random, half the noise", plan={"target_epsilon": 21.415}),
    ),
    seeds=(1,),
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
)
