"""Campaigns that keep a snapshot after every step, wherever this module is imported, and write down their steps."""

import os
from pathlib import Path

import torch
import yaml
from rank_campaigns import DOCUMENT, Dropping

from dpal.campaign import fault_points, sealed_snapshot
from dpal.campaign.campaign import Campaign
from dpal.campaign.config import checked_config

# A file that gets a line for each step.
LOG = "DPAL_TEST_STEPS"
# The campaign of several processes, and how its variants differ: all have units, augmented copies and dropout.
VARIANTS = {
    "seeded": {"training": {"optimizer": "nadam", "average": 0.99}},
    "sealed": {
        "seed": None,
        "not_private": False,
        "training": {"optimizer": "sgd", "optimizer_options": {"momentum": 0.9}, "average": 0.9},
    },
}
__all__ = ["LOG", "VARIANTS", "Dropping", "create"]


def create(folder: Path, variant: str) -> Campaign:
    torch.set_num_threads(1)
    document = yaml.safe_load(DOCUMENT)
    changed = VARIANTS[variant]
    document |= changed | {"training": document["training"] | changed["training"]}
    document |= {"model": {"name": "snapshot_campaigns:Dropping"}}
    document["plan"] |= {"query_sizes": [], "initial_size": 60}
    return Campaign.from_config(folder, checked_config(document))


def _noted(point: str) -> None:
    _REACHED(point)
    if point == "train.step":
        with Path(os.environ[LOG]).open("a", encoding="ascii") as log:
            log.write("step\n")


_REACHED = fault_points.reached
if LOG in os.environ:
    sealed_snapshot.SECONDS_BETWEEN, sealed_snapshot.LARGEST_SHARE = 0.0, 1e9
    fault_points.reached = _noted
