"""All experiments by name."""

from dpal.errors import InvalidArgument
from dpal.experiments.ablations import (
    ALTERNATIVES,
    BUDGET,
    HISTOGRAMS,
    LABELS,
    MECHANISMS,
    PLANNING,
    SELECTION_QUALITY,
    SPLIT,
)
from dpal.experiments.private_cut import CUT, CUT_LABELS
from dpal.experiments.runs import Experiment
from dpal.experiments.table1 import DELTA, EQUIVARIANT, HEADLINE, OWN, SKIN, TABLE1

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        HEADLINE,
        CUT,
        CUT_LABELS,
        OWN,
        TABLE1,
        EQUIVARIANT,
        DELTA,
        SPLIT,
        LABELS,
        BUDGET,
        ALTERNATIVES,
        MECHANISMS,
        SELECTION_QUALITY,
        HISTOGRAMS,
        PLANNING,
        SKIN,
    )
}


def experiment_named(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise InvalidArgument("the experiment", name, f"one of {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]
