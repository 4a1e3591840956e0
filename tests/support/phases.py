"""Small training phases."""

import numpy as np
import torch
from networks import cross_entropy
from torch import nn

from dpal.planning.plan import Phase
from dpal.randomness import SeededRandomness
from dpal.training.loop import train_phase
from dpal.training.settings import TrainingSettings
from dpal.training.sources import TensorSource


def seeded(seed: int = 2) -> SeededRandomness:
    return SeededRandomness(seed=seed, nothing_is_private=True)


def phase(steps: int = 5, noise: float = 1e-6, rates: tuple[float, ...] = (0.5,), batch: float = 50.0) -> Phase:
    return Phase(steps=steps, noise_multiplier=noise, expected_batch_size=batch, sampling_probabilities=rates)


def two_clouds(count: int = 100) -> TensorSource:
    torch.manual_seed(0)
    targets = torch.arange(count) % 2
    return TensorSource(torch.randn(count, 4) + 3 * targets[:, None], targets)


def run(model: nn.Module, source: TensorSource, plan: Phase, **options):
    options.setdefault("groups", [np.arange(len(source))])
    options.setdefault("optimizer", torch.optim.SGD(model.parameters(), lr=0.5))
    options.setdefault("settings", TrainingSettings())
    options.setdefault("randomness", seeded())
    options.setdefault("loss", cross_entropy)
    return train_phase(model, plan, source=source, **options)
