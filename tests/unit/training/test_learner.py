"""A learner that goes on after a restart trains as one that was never stopped, and each phase is checked anew."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dpal.errors import MixesRecords
from dpal.models.equivariant import EquivariantResNet9
from dpal.planning.plan import Phase
from dpal.randomness import SeededRandomness
from dpal.training.learner import Learner, put_channels_last
from dpal.training.settings import Augmentation, ComputeSettings, TrainingSettings

COUNT = 40
LABELS = np.arange(COUNT) % 3


class Records:
    bytes_each = 256

    def __init__(self) -> None:
        self.values = np.random.default_rng(0).normal(size=(COUNT, 1, 8, 8)).astype(np.float32)

    def __len__(self) -> int:
        return COUNT

    def read(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.values[positions]


def network(*, inplace: bool) -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, bias=False),
        nn.GroupNorm(4, 8),
        nn.ReLU(inplace=inplace),
        nn.Dropout(0.3),
        nn.Flatten(),
        nn.Linear(8 * 36, 3),
    )


def learner(make: Callable[[], nn.Module], *, engine: str = "auto", **training: Any) -> Learner:
    compute = ComputeSettings(max_physical_batch_size=16, device="cpu", engine=engine)
    return Learner(make(), Records(), multi_label=False, settings=TrainingSettings(**training), compute=compute)


def train(who: Learner, phase: int, *groups: NDArray[np.int64]) -> str:
    plan = Phase(
        steps=3, noise_multiplier=1.0, expected_batch_size=8.0, sampling_probabilities=tuple(0.3 for _ in groups)
    )
    return who.train(
        plan,
        groups,
        LABELS,
        randomness=SeededRandomness(seed=phase, nothing_is_private=True),
        description="phase",
        after_step=lambda step: None,
    ).engine


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("engine", ["fused", "vmap"])
def test_going_on_after_a_restart_changes_nothing(tmp_path: Path, inplace: bool, copies: int, engine: str) -> None:
    if inplace and engine == "vmap":
        pytest.skip("vmap and what happens in place do not go together")
    options = {"engine": engine, "augmentation": Augmentation(copies=copies, flip=copies > 1)}
    whole = learner(lambda: network(inplace=inplace), **options)
    train(whole, 1, np.arange(20))
    whole.save(tmp_path / "weights")
    train(whole, 2, np.arange(20), np.arange(20, 40))
    resumed = learner(lambda: network(inplace=inplace), **options)
    resumed.load(tmp_path / "weights")
    train(resumed, 2, np.arange(20), np.arange(20, 40))
    for one, other in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_mixing_that_one_record_cannot_show_is_found_before_it_trains() -> None:
    class Mixing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(64, 3)

        def forward(self, images: Tensor) -> Tensor:
            outputs = self.linear(images.flatten(1))
            return outputs + outputs.mean(dim=0)

    with pytest.raises(MixesRecords):
        train(learner(Mixing), 1, np.arange(1))


def test_filters_lie_channels_last_and_other_parameters_stay() -> None:
    model = EquivariantResNet9(fields=(2, 2, 2))
    before = {name: each.detach().clone() for name, each in model.named_parameters()}
    put_channels_last(model)
    for name, each in model.named_parameters():
        assert torch.equal(each, before[name])
        assert each.ndim != 4 or each.is_contiguous(memory_format=torch.channels_last)
