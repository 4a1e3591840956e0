"""A model and its records: everything a campaign asks of training, in one place."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dpal.errors import InvalidArgument
from dpal.planning.plan import Phase
from dpal.randomness import Randomness
from dpal.training.averaging import WeightAverage
from dpal.training.checkpoints import load_weights, save_weights
from dpal.training.data import Scaling
from dpal.training.loop import PhaseResult, TrainingSettings, train_phase
from dpal.training.losses import loss_for
from dpal.training.optimizers import make_optimizer
from dpal.training.predict import logits
from dpal.training.sources import Readable, source_for


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

    def place(self) -> torch.device:
        """The device: a GPU where there is one."""
        if self.device != "auto":
            return torch.device(self.device)
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Learner:
    """Trains phase after phase and predicts in between."""

    def __init__(self, model: nn.Module, records: Readable, *, multi_label: bool, settings: LearnerSettings) -> None:
        self.settings, self.multi_label = settings, multi_label
        self.device = settings.place()
        self.model = model.to(self.device)
        self.records = records
        self.source = source_for(
            records, np.zeros(len(records), dtype=np.int64), device=self.device, scaling=settings.scaling
        )
        self.average = None if settings.average is None else WeightAverage(self.model, decay=settings.average)

    def save(self, path: Path) -> None:
        """Write the weights to a file."""
        save_weights(path, self.model, self.average)

    def load(self, path: Path) -> None:
        """Take the weights from a file."""
        load_weights(path, self.model, self.average)

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
        """The weights that predict, under the model's own names, for use without dpal."""
        from safetensors.torch import save_file

        with self._best():
            state = {name: each.detach().cpu().contiguous().clone() for name, each in self.model.state_dict().items()}
        save_file(state, path)

    def _best(self) -> AbstractContextManager[None]:
        return nullcontext() if self.average is None else self.average.applied()

    @contextmanager
    def _deterministic(self, randomness: Randomness) -> Generator[None]:
        """Dropout comes from torch's own generator: here it follows the step's randomness, so that it repeats."""
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(int.from_bytes(randomness.bytes(7), "little"))
            yield


def _classifier(model: nn.Module) -> nn.Module | None:
    """The layer that adaptive clipping leaves alone, by its usual names."""
    for name in ("classifier", "head", "fc"):
        found = getattr(model, name, None)
        if isinstance(found, nn.Module):
            return found
    return None
