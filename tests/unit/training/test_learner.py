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


def test_a_learner_trains_on_units() -> None:
    # Each unit's records are the same, so that units train as their first records do.
    table = np.arange(COUNT).reshape(8, 5)
    trained = []
    for units in (table, table[:, :1]):
        model = network(inplace=False)
        model[3].p = 0.0  # pyright: ignore
        records = Records()
        records.values = records.values[table[:, 0].repeat(5)]
        settings = TrainingSettings(optimizer="sgd", learning_rate=0.1)
        compute = ComputeSettings(max_physical_batch_size=16, device="cpu")
        who = Learner(model, records, multi_label=False, settings=settings, compute=compute)
        plan = Phase(steps=2, noise_multiplier=1e-9, expected_batch_size=8.0, sampling_probabilities=(1.0,))
        who.train(
            plan,
            [np.arange(8)],
            LABELS[table[:, 0].repeat(5)],
            randomness=SeededRandomness(seed=3, nothing_is_private=True),
            description="phase",
            after_step=lambda step: None,
            units=units,
        )
        trained.append([each.detach().clone() for each in who.model.parameters()])
    for one, other in zip(*trained, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("multi_label", [False, True])
def test_a_trial_step_with_units_finds_what_cannot_work(multi_label: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    who = learner(lambda: network(inplace=False))
    who.multi_label = multi_label
    who.records.form = {"": who.records.values[0]}  # pyright: ignore
    tables: list[NDArray[np.int64] | None] = []
    true = Learner.train

    def noted(self: Learner, *given: Any, **options: Any) -> Any:
        tables.append(options["units"])
        return true(self, *given, **options)

    monkeypatch.setattr(Learner, "train", noted)
    who.try_one_step(3, rows_per_unit=6)
    who.try_one_step(3)
    assert tables[0] is not None
    assert tables[0].shape == (4, 6)
    assert (tables[0] >= 0).sum(axis=1).tolist() == [6, 6, 6, 1]
    assert tables[1] is None
