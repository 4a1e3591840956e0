"""A phase in the middle: everything that its next step needs, as bytes, and back again bit for bit.

Weights, their average and the optimizer's state follow from noisy gradients, for which the phase's charge has paid. How
far the random streams have come, and how many gradients were broken, depends on who was drawn: a snapshot is as private
as the phase's key. Only numbers and JSON are in it: nothing that can be executed.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from dpal.randomness import Randomness
from dpal.training.averaging import WeightAverage

_WORDS, _WEIGHTS, _AVERAGE, _OPTIMIZER = "words", "weights/", "average/", "optimizer/"


class Snapshots:
    """Where a phase begins, and what becomes of its snapshots. This one begins at the first step and keeps nothing."""

    def newest(self) -> bytes | None:
        """The snapshot to go on from."""
        return None

    def resumed_at(self, step: int | None, steps: int) -> None:
        """Training goes on after this step, of so many; None if the snapshot does not fit, and it starts over."""

    def offer(self, taken: Callable[[], bytes]) -> None:
        """A step is done, and more follow: a snapshot may be taken now."""


@dataclass(frozen=True, slots=True)
class GivenSnapshot(Snapshots):
    """What another process goes on from. It keeps nothing."""

    content: bytes | None = field(repr=False)

    def newest(self) -> bytes | None:
        return self.content


@dataclass(slots=True, kw_only=True)
class PhaseState:
    """All that changes from step to step. Everything else follows from the plan, the records, the key and the step.

    Torch's own generators are not in it: they are seeded for each physical batch (`batch_randomness`).
    """

    model: nn.Module = field(repr=False)
    optimizer: torch.optim.Optimizer = field(repr=False)
    average: WeightAverage | None = field(repr=False)
    randomness: Randomness = field(repr=False)
    # Who sits in which row of which physical batch.
    seats: np.random.Generator = field(repr=False)
    # How many gradients were computed, and how many of them were not finite.
    seen: int = field(default=0, repr=False)
    not_finite: Tensor = field(repr=False)
    warned: bool = field(default=False, repr=False)
    # Steps.
    done: int = 0

    def to_bytes(self, how: str) -> bytes:
        """The state now. `how` says how it is computed, as far as bits depend on it."""
        numbers: dict[str, float] = {}
        kept = {_WEIGHTS + name: value for name, value in self._weights().items()}
        if self.average is not None:
            kept |= {_AVERAGE + name: value for name, value in self.average.state_dict().items()}
        for name, parameter in self._trained().items():
            entries = cast("Mapping[str, object]", self.optimizer.state.get(parameter, {}))
            for entry, value in entries.items():
                if isinstance(value, Tensor):
                    kept[f"{_OPTIMIZER}{name}/{entry}"] = value
                elif isinstance(value, int | float):
                    numbers[f"{_OPTIMIZER}{name}/{entry}"] = value
                elif value is not None:
                    raise TypeError(
                        f"The optimizer keeps a {type(value).__name__} as {entry}, for which there is no form."
                    )
        words = {
            "how": how,
            "done": self.done,
            "seen": self.seen,
            "not_finite": int(self.not_finite),
            "warned": self.warned,
            "randomness": self.randomness.position,
            "seats": self.seats.bit_generator.state,
            "numbers": numbers,
            # Counters of an optimizer stay on the host, whatever the device.
            "on_host": sorted(name for name, value in kept.items() if value.device.type == "cpu"),
        }
        content = np.frombuffer(json.dumps(words, sort_keys=True).encode(), dtype=np.uint8).copy()
        return save({_WORDS: torch.from_numpy(content), **_on_host(kept)})

    def restore(self, content: bytes, how: str) -> bool:
        """Become what the bytes say. False, and nothing is changed, if they are of another way to compute."""
        try:
            tensors = load(content)
            words = cast("dict[str, Any]", json.loads(tensors.pop(_WORDS).numpy().tobytes()))
        except (SafetensorError, KeyError, ValueError):
            return False
        own = self._weights()
        weights = {name: tensors[_WEIGHTS + name] for name in own if _WEIGHTS + name in tensors}
        shapes = {name: value.shape for name, value in weights.items()}
        if words["how"] != how or shapes != {name: value.shape for name, value in own.items()}:
            return False
        with torch.no_grad():
            for name, value in weights.items():
                own[name].copy_(value)
        if self.average is not None:
            self.average.load_state_dict(_beginning_with(_AVERAGE, tensors))
        trained, on_host = self._trained(), set[str](words["on_host"])
        for place, value in _beginning_with(_OPTIMIZER, tensors).items():
            name, _, entry = place.rpartition("/")
            # A copy, and not a view of all that was read.
            own_value = value.clone() if _OPTIMIZER + place in on_host else _like(trained[name], value)
            self.optimizer.state[trained[name]][entry] = own_value
        for place, number in _beginning_with(_OPTIMIZER, words["numbers"]).items():
            name, _, entry = place.rpartition("/")
            self.optimizer.state[trained[name]][entry] = number
        self.randomness.go_to(words["randomness"])
        self.seats.bit_generator.state = words["seats"]
        self.not_finite = torch.full_like(self.not_finite, words["not_finite"])
        self.seen, self.warned, self.done = words["seen"], words["warned"], words["done"]
        return True

    def _trained(self) -> dict[str, nn.Parameter]:
        return {name: parameter for name, parameter in self.model.named_parameters() if parameter.requires_grad}

    def _weights(self) -> dict[str, Tensor]:
        """What training changes, each once. What is frozen is still as the phase found it."""
        return {**self._trained(), **dict(self.model.named_buffers())}


def _beginning_with(start: str, named: Mapping[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(start): value for name, value in named.items() if name.startswith(start)}


def _on_host(kept: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copied only where it must be, for large models: tensors of one file may not share memory."""
    tensors: dict[str, Tensor] = {}
    places: set[int] = set()
    for name, value in kept.items():
        host = value.detach().cpu().contiguous()
        place = host.untyped_storage().data_ptr()
        tensors[name] = host.clone() if place in places else host
        places.add(place)
    return tensors


def _like(parameter: Tensor, value: Tensor) -> Tensor:
    """On the parameter's device, and laid out in memory as it is."""
    if value.shape != parameter.shape:
        return value.to(parameter.device)
    return torch.empty_like(parameter, dtype=value.dtype, requires_grad=False).copy_(value)
