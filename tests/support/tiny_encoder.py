"""A torch module that encodes images within microseconds, and campaigns whose model reads its features.

As a program: tiny_encoder.py ACTION FOLDER, to be killed by tests.
"""

import sys
from pathlib import Path
from typing import Any

import torch
from small_campaigns import small_plan, small_pool
from torch import Tensor, nn

from dpal.campaign.campaign import Campaign
from dpal.data import Pool
from dpal.models.features import Features


class TinyEncoder(nn.Module):
    """The means of a grid of 4 × 4 fields, and how often it was called."""

    side = 16
    trained_on = "nothing: its weights are constants"
    licence = "none needed"

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))
        self.calls = 0

    def forward(self, images: Tensor) -> Tensor:
        self.calls += 1
        return nn.functional.adaptive_avg_pool2d(images[:, :1], 4).flatten(1) * self.factor


def options(module: nn.Module | None = None, pool: Pool | None = None, held_out: bool = True) -> dict[str, Any]:
    """What a campaign is opened with."""
    given: dict[str, Any] = {
        "pool": small_pool() if pool is None else pool,
        "model": Features(encoder=TinyEncoder() if module is None else module),
    }
    if held_out:
        given |= {"evaluation": small_pool("test", 60), "evaluation_is_public": True}
    return given


def encoded_campaign(folder: Path, **changed: Any) -> Campaign:
    """A new campaign of a second or two, with a seed, on 150 records."""
    chosen = {"plan": small_plan(), "oracle": "simulated", "seed": 7, "not_private": True} | options() | changed
    return Campaign.create(folder, training={"learning_rate": 0.05} | chosen.pop("training", {}), **chosen)


def main() -> None:
    torch.set_num_threads(1)
    action, folder = sys.argv[1], Path(sys.argv[2])
    if action == "create":
        encoded_campaign(folder)
    else:
        Campaign.open(folder, **options()).run()


if __name__ == "__main__":
    main()
