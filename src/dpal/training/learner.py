"""A model and its records: everything a campaign asks of training, in one place."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dpal.errors import InvalidArgument, TrainingDiverged
from dpal.planning.plan import Phase
from dpal.privacy import checks
from dpal.randomness import Randomness, SecureRandomness
from dpal.training.averaging import WeightAverage
from dpal.training.checkpoints import load_weights, save_weights, write_tensors
from dpal.training.loop import PhaseResult, TrainingSettings, train_phase
from dpal.training.losses import loss_for
from dpal.training.optimizers import make_optimizer
from dpal.training.predict import logits
from dpal.training.sources import Readable, Scaling, TensorSource, source_for

_REHEARSED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerSettings:
    """How to train, apart from the plan. All of it is public."""

    optimizer: str = "nadam"
    learning_rate: float = 1e-3
    optimizer_options: Mapping[str, float] = field(default_factory=dict[str, float])
    # The decay of the weights' moving average, which then selects and is exported; None: the weights themselves.
    average: float | None = 0.99
    training: TrainingSettings = field(default_factory=TrainingSettings)
    scaling: Scaling = field(default_factory=Scaling)
    device: str = "auto"

    def __post_init__(self) -> None:
        checks.positive("learning_rate", self.learning_rate)

    def place(self) -> torch.device:
        """The device: a GPU where there is one."""
        if self.device != "auto":
            if self.device.startswith("cuda") and not torch.cuda.is_available():
                raise InvalidArgument("device", self.device, "cpu here: torch finds no GPU")
            return torch.device(self.device)
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Learner:
    """Trains phase after phase and predicts in between."""

    def __init__(self, model: nn.Module, records: Readable, *, multi_label: bool, settings: LearnerSettings) -> None:
        self.settings, self.multi_label = settings, multi_label
        self.device = settings.place()
        self.model = model.to(self.device)
        if self.device.type == "cuda":
            put_channels_last(self.model)
        self.records = records
        self.source = source_for(
            records, np.zeros(len(records), dtype=np.int64), device=self.device, scaling=settings.scaling
        )
        self.average = None if settings.average is None else WeightAverage(self.model, decay=settings.average)

    @property
    def in_memory(self) -> bool:
        """Whether all records were read when this was made; otherwise they are read whenever they are needed."""
        return isinstance(self.source, TensorSource)

    def save(self, path: Path) -> None:
        """Write the weights to a file."""
        save_weights(path, self.model, self.average)

    def load(self, path: Path) -> None:
        """Take the weights from a file."""
        load_weights(path, self.model, self.average)

    def rehearse(self, classes: int, passes: int = 1) -> None:
        """One private step on made-up records, with a copy of the model: what cannot work fails now, at no cost."""
        rng = np.random.default_rng(0)
        form = self.records.form
        made = {name: _made_up(part.dtype, part.shape, rng) for name, part in form.items()}
        values: Any = made.get("", made)
        targets = rng.integers(0, 2, (_REHEARSED, classes)).astype(np.float32) if self.multi_label else None
        copy = Learner(
            deepcopy(self.model), _MadeUp(values, form), multi_label=self.multi_label, settings=self.settings
        )
        found = copy.logits_of(copy.records)
        if found.shape[1] != classes:
            raise InvalidArgument("the number of the model's outputs", found.shape[1], f"{classes}, one a class")
        if passes > 1:
            copy.logits(np.arange(_REHEARSED), passes=passes, randomness=SecureRandomness())
        try:
            copy.train(
                Phase(steps=1, noise_multiplier=1.0, expected_batch_size=2.0, sampling_probabilities=(1.0,)),
                [np.arange(_REHEARSED)],
                np.zeros(_REHEARSED, dtype=np.int64) if targets is None else targets,
                randomness=SecureRandomness(),
                description="rehearsal",
                after_step=lambda step: None,
            )
        except TrainingDiverged as error:
            allowed = "lower: a single step on made-up records diverges with it. Nothing was charged"
            raise InvalidArgument("learning_rate", self.settings.learning_rate, allowed) from error

    def train(
        self,
        phase: Phase,
        groups: Sequence[NDArray[np.int64]],
        targets: NDArray[np.generic],
        *,
        randomness: Randomness,
        description: str,
        after_step: Callable[[int], None],
    ) -> PhaseResult:
        """One phase of the plan. `targets` has a row for every record; only those of the groups are looked at."""
        with self._deterministic(randomness):
            return train_phase(
                self.model,
                phase,
                source=self.source.with_targets(torch.as_tensor(targets).to(self.device)),
                groups=groups,
                loss=loss_for(multi_label=self.multi_label),
                optimizer=make_optimizer(
                    self.settings.optimizer,
                    self.model,
                    learning_rate=self.settings.learning_rate,
                    exempt_layer=_classifier(self.model),
                    **self.settings.optimizer_options,
                ),
                settings=self.settings.training,
                randomness=randomness,
                average=self.average,
                after_step=after_step,
                description=description,
            )

    def logits(self, positions: NDArray[np.int64], *, passes: int, randomness: Randomness) -> NDArray[np.float32]:
        """Of records of the pool."""
        with self._deterministic(randomness), self._best():
            return logits(self.model, self.source, positions, passes=passes, precision=self.settings.training.precision)

    def logits_of(self, records: Readable) -> NDArray[np.float32]:
        """Of other records, such as a held-out set."""
        if len(records) == 0:
            raise InvalidArgument("the number of records", 0, "at least 1")
        other = source_for(
            records, np.zeros(len(records), dtype=np.int64), device=self.device, scaling=self.settings.scaling
        )
        with self._best():
            return logits(self.model, other, np.arange(len(records)), precision=self.settings.training.precision)

    def export(self, path: Path) -> None:
        """The weights that predict, under the model's own names, for use without dpal: always the same bytes."""
        with self._best():
            state = {name: each.detach().cpu().contiguous().clone() for name, each in self.model.state_dict().items()}
        write_tensors(path, state)

    def device_name(self) -> str:
        """What the device is called, for records of where something ran."""
        return torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else self.device.type

    def _best(self) -> AbstractContextManager[None]:
        return nullcontext() if self.average is None else self.average.applied()

    @contextmanager
    def _deterministic(self, randomness: Randomness) -> Generator[None]:
        """Dropout comes from torch's own generator: here it follows the step's randomness, so that it repeats."""
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(int.from_bytes(randomness.bytes(7), "little"))
            yield


def rehearse_settings(settings: LearnerSettings) -> None:
    """One private step of a tiny model on made-up images: settings that no model can be trained with fail here."""
    images = np.zeros((_REHEARSED, 1, 32, 32), dtype=np.uint8)
    model = nn.Sequential(nn.Flatten(), nn.Linear(32 * 32, 2))
    Learner(model, _MadeUp(images, {"": images[0]}), multi_label=False, settings=settings).rehearse(2)


def put_channels_last(model: nn.Module) -> None:
    """Filters in the order in which records lie on a GPU: convolutions are faster so. Other parameters stay."""
    for parameter in model.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)


class _MadeUp:
    """Synthetic records."""

    def __init__(self, values: Any, form: Mapping[str, Any]) -> None:
        self.values, self.form = values, form

    def __len__(self) -> int:
        return _REHEARSED

    bytes_each = 0

    def read(self, positions: NDArray[np.int64]) -> Any:
        if isinstance(self.values, dict):
            return {name: part[positions] for name, part in self.values.items()}
        return self.values[positions]


def _made_up(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[Any]:
    """Rows of this shape and kind; zeros and ones are valid token numbers."""
    if dtype.kind == "f":
        return rng.normal(size=(_REHEARSED, *shape)).astype(dtype)
    return rng.integers(0, 256 if dtype == np.uint8 else 2, (_REHEARSED, *shape)).astype(dtype)


def _classifier(model: nn.Module) -> nn.Module | None:
    """The layer that adaptive clipping leaves alone, by its usual names."""
    for name in ("classifier", "head", "fc"):
        found = getattr(model, name, None)
        if isinstance(found, nn.Module):
            return found
    return None
