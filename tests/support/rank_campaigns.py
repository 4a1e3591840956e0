"""Campaigns for several processes: patients with up to four digits each, augmented copies, dropout, a known seed."""

import os
import subprocess
import sys
from pathlib import Path

import torch
import yaml
from killed_programs import PATH
from torch import Tensor, nn

from dpal.campaign import fault_points
from dpal.campaign.campaign import Campaign
from dpal.campaign.config import checked_config

# The last figure of an id counts the images of one person.
DOCUMENT = """
data: {source: digits, unit: {name: patient, pattern: 'digit-(\\d+)\\d', records: 4}}
plan: {target_epsilon: 8, target_delta: 1.0e-3, initial_size: 40, query_sizes: [20], batch_size: 10, epochs: 3,
       planner: step-amplification, accountant: rdp, selection: random}
model: {name: "rank_campaigns:Dropping"}
oracle: simulated
seed: 7
not_private: true
training: {learning_rate: 0.002, augmentation: {copies: 2, crop: 1}}
"""


class Dropping(nn.Module):
    """A small network with dropout."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Dropout(0.2), nn.Flatten())
        self.head = nn.Linear(6 * 36, classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.body(images))


def create(folder: Path) -> Campaign:
    torch.set_num_threads(1)
    return Campaign.from_config(folder, checked_config(yaml.safe_load(DOCUMENT)))


def started(folder: Path, processes: int, *, kill_at: str | None = None, by_torchrun: bool = False) -> subprocess.Popen:
    """`dpal run` in a process of its own, which starts the others."""
    environment = os.environ | {"PYTHONPATH": PATH}
    if kill_at is not None:
        environment[fault_points.VARIABLE] = kill_at
    several = ["--processes", str(processes)] if processes > 1 and not by_torchrun else []
    before = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes)] if by_torchrun else []
    return subprocess.Popen(
        [sys.executable, *before, "-m", "dpal", "run", str(folder), *several],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def children(process: subprocess.Popen) -> list[int]:
    """The processes that this one has started and that are still there."""
    try:
        words = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
    return [int(word) for word in words if is_running(int(word))]


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"
