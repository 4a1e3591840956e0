"""A phase that goes on from any of its snapshots ends with the very weights of one that was never interrupted."""

import json
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from rank_programs import COUNT, SIZES, Images
from safetensors.torch import load, save
from small_units import ragged
from torch import nn

from dpal.planning.plan import Phase
from dpal.randomness import Randomness, SealedRandomness, SeededRandomness
from dpal.training import loop
from dpal.training.averaging import WeightAverage
from dpal.training.learner import Learner
from dpal.training.loop import PhaseResult
from dpal.training.optimizers import OPTIMIZERS, SGD_AGC
from dpal.training.phase_snapshot import GivenSnapshot, PhaseState, Snapshots
from dpal.training.settings import Augmentation, ComputeSettings, TrainingSettings

STEPS = 12
KINDS: dict[str, Callable[[], Randomness]] = {
    "sealed": lambda: SealedRandomness(bytes(range(32))),
    "seeded": lambda: SeededRandomness(seed=11, nothing_is_private=True),
}
OPTIONS = {"sgd": {"momentum": 0.9}, SGD_AGC: {"momentum": 0.9}, "nadam": {"weight_decay": 0.01}, "adamw": {}}


class Counting(nn.Module):
    """With a buffer that is not in the model's state_dict, as a network of one's own may have."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64), persistent=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images


class Every(Snapshots):
    """Takes one after each step, and may begin with one."""

    def __init__(self, begin_with: bytes | None = None) -> None:
        self.begin_with, self.taken = begin_with, list[bytes]()
        self.resumed: list[tuple[int | None, int]] = []

    def newest(self) -> bytes | None:
        return self.begin_with

    def resumed_at(self, step: int | None, steps: int) -> None:
        self.resumed.append((step, steps))

    def offer(self, taken: Callable[[], bytes]) -> None:
        self.taken.append(taken())


def learner(optimizer: str, average: float | None, engine: str = "auto") -> Learner:
    torch.manual_seed(5)
    layers = (nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(144, 3))
    settings = TrainingSettings(
        optimizer=optimizer,
        optimizer_options=OPTIONS[optimizer],
        learning_rate=0.01,
        average=average,
        augmentation=Augmentation(copies=2, flip=True, crop=1),
    )
    compute = ComputeSettings(device="cpu", engine=engine)
    return Learner(nn.Sequential(*layers, Counting()), Images(), multi_label=False, settings=settings, compute=compute)


def trained(
    own: Learner, kind: str, snapshots: Snapshots | None = None, *, in_units: bool = False
) -> tuple[bytes, PhaseResult, list[int]]:
    """The weights at the end, what happened, and the steps that were taken."""
    members = len(SIZES) if in_units else COUNT
    plan = Phase(steps=STEPS, noise_multiplier=1.0, expected_batch_size=members / 4, sampling_probabilities=(0.3, 0.2))
    steps: list[int] = []
    groups: list[NDArray[np.int64]] = [np.arange(0, members, 2), np.arange(1, members, 2)]
    result = own.train(
        plan,
        groups,
        np.arange(COUNT) % 3,
        randomness=KINDS[kind](),
        description="phase",
        after_step=steps.append,
        units=ragged(SIZES) if in_units else None,
        snapshots=snapshots,
    )
    return own.weights(), result, steps


@pytest.mark.parametrize(
    ("optimizer", "kind", "average", "in_units"),
    [*product([*OPTIMIZERS, SGD_AGC], KINDS, [0.99], [False]), ("nadam", "sealed", None, True)],
)
def test_it_ends_with_the_same_bits_from_every_step(
    optimizer: str, kind: str, average: float | None, in_units: bool
) -> None:
    assert set(OPTIONS) == {*OPTIMIZERS, SGD_AGC}
    kept = Every()
    expected, whole, steps = trained(learner(optimizer, average), kind, kept, in_units=in_units)
    assert steps == list(range(STEPS))
    # After the last step there is nothing to go on with.
    assert len(kept.taken) == STEPS - 1
    # Taking them changes nothing.
    assert trained(learner(optimizer, average), kind, in_units=in_units)[0] == expected
    for done in (1, 6, STEPS - 1):
        again = Every(kept.taken[done - 1])
        weights, result, steps = trained(learner(optimizer, average), kind, again, in_units=in_units)
        assert again.resumed == [(done, STEPS)]
        assert steps == list(range(done, STEPS))
        assert weights == expected
        assert (result, result.not_finite) == (whole, whole.not_finite)
        # A phase may die again: later snapshots are the same ones too.
        assert again.taken == kept.taken[done:]
    assert whole.not_finite > 0


def changed(content: bytes, words: dict[str, Any], without: str = "none") -> bytes:
    tensors = load(content)
    said = json.loads(tensors.pop("words").numpy().tobytes()) | words
    kept = {name: value for name, value in tensors.items() if without not in name}
    return save({"words": torch.from_numpy(np.frombuffer(json.dumps(said).encode(), dtype=np.uint8).copy()), **kept})


FORGOTTEN = {
    "how far the stream is": lambda content: changed(content, {"randomness": 3}),
    "the seats": lambda content: changed(content, {"seats": np.random.default_rng(3).bit_generator.state}),
    "the step": lambda content: changed(content, {"done": 5}),
    "the optimizer's moments": lambda content: changed(content, {}, "optimizer/"),
}


@pytest.mark.parametrize("bug", FORGOTTEN)
def test_whatever_is_forgotten_shows(bug: str) -> None:
    kept = Every()
    expected, _, _ = trained(learner("adamw", None), "sealed", kept)
    content = FORGOTTEN[bug](kept.taken[5])
    assert trained(learner("adamw", None), "sealed", GivenSnapshot(changed(kept.taken[5], {})))[0] == expected
    assert trained(learner("adamw", None), "sealed", GivenSnapshot(content))[0] != expected


@pytest.mark.parametrize(("owner", "method"), [(SealedRandomness, "go_to"), (WeightAverage, "load_state_dict")])
def test_a_restoration_that_leaves_something_out_shows(
    monkeypatch: pytest.MonkeyPatch, owner: type, method: str
) -> None:
    kept = Every()
    expected, _, _ = trained(learner("nadam", 0.99), "sealed", kept)
    monkeypatch.setattr(owner, method, lambda self, given: None)
    assert trained(learner("nadam", 0.99), "sealed", GivenSnapshot(kept.taken[5]))[0] != expected


def test_counts_of_broken_gradients_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator is warned once, by the numbers of the whole phase."""
    warnings: list[tuple[int, int]] = []
    monkeypatch.setattr(loop, "_warned_of_broken", lambda seen, broken, **_: warnings.append((seen, broken)) or False)
    kept = Every()
    trained(learner("sgd", None), "sealed", kept)
    whole, warnings[:] = list(warnings), []
    trained(learner("sgd", None), "sealed", GivenSnapshot(kept.taken[9]))
    # At step 10 and at the end.
    assert warnings == whole[-2:]


def test_another_engine_starts_over() -> None:
    kept = Every()
    trained(learner("sgd", None), "sealed", kept)
    again = Every(kept.taken[5])
    weights, _, steps = trained(learner("sgd", None, engine="vmap"), "sealed", again)
    assert again.resumed == [(None, STEPS)]
    assert steps == list(range(STEPS))
    assert weights == trained(learner("sgd", None, engine="vmap"), "sealed")[0]


@pytest.mark.parametrize("content", [b"", b"no tensors", save({"other": torch.zeros(2)})])
def test_what_is_no_snapshot_starts_over(content: bytes) -> None:
    again = Every(content)
    weights, _, steps = trained(learner("sgd", None), "sealed", again)
    assert again.resumed == [(None, STEPS)]
    assert steps == list(range(STEPS))
    assert weights == trained(learner("sgd", None), "sealed")[0]


def state_of(model: nn.Module, average: WeightAverage | None = None) -> PhaseState:
    return PhaseState(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        average=average,
        randomness=SealedRandomness(bytes(32)),
        seats=np.random.default_rng(1),
        not_finite=torch.zeros((), dtype=torch.int64),
    )


def test_a_model_of_another_shape_is_left_as_it_is() -> None:
    content = state_of(nn.Linear(4, 2)).to_bytes("here")
    other = nn.Linear(4, 3)
    before = other.weight.detach().clone()
    state = state_of(other)
    assert not state.restore(content, "here")
    assert torch.equal(other.weight, before)
    assert state.done == 0


def test_buffers_come_along_and_frozen_weights_do_not() -> None:
    model = nn.Sequential(nn.Linear(4, 4), Counting(), nn.Linear(4, 2))
    model[0].requires_grad_(False)
    model[1].calls.fill_(7)
    names = set(load(state_of(model).to_bytes("here")))
    assert names == {"words", "weights/2.weight", "weights/2.bias", "weights/1.calls"}
    content = state_of(model).to_bytes("here")
    model[1].calls.zero_()
    assert state_of(model).restore(content, "here")
    assert model[1].calls == 7


def test_parts_of_one_tensor_come_back_too() -> None:
    model, whole = nn.Linear(4, 2), torch.arange(6.0)
    model.register_buffer("first", whole[:3])
    model.register_buffer("second", whole[3:])
    content = state_of(model).to_bytes("here")
    whole.zero_()
    assert state_of(model).restore(content, "here")
    assert torch.equal(whole, torch.arange(6.0))


def test_nothing_private_is_shown() -> None:
    shown = repr(state_of(nn.Linear(4, 2))) + repr(GivenSnapshot(b"secret"))
    for private in ("seen", "not_finite", "warned", "randomness", "seats", "secret"):
        assert private not in shown


def test_an_optimizer_that_keeps_something_else_is_refused() -> None:
    state = state_of(nn.Linear(4, 2))
    state.optimizer.state[state.model.weight]["history"] = [1, 2]  # type: ignore[index]
    with pytest.raises(TypeError, match="keeps a list as history"):
        state.to_bytes("here")
