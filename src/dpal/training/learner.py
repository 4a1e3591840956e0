"""A model and its records: everything a campaign asks of training, in one place."""

import hashlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dpal.errors import DpalError, InvalidArgument, TrainingDiverged
from dpal.planning.plan import Phase
from dpal.randomness import Randomness, SecureRandomness
from dpal.training.averaging import WeightAverage
from dpal.training.checkpoints import (
    load_weights,
    load_weights_from,
    save_weights,
    weights_as_bytes,
    write_tensors,
)
from dpal.training.loop import PhaseResult, train_phase
from dpal.training.losses import loss_for
from dpal.training.onnx_export import export_onnx
from dpal.training.optimizers import learning_rate_for
from dpal.training.phase_snapshot import Snapshots
from dpal.training.prediction import logits
from dpal.training.processes import OneProcess, Processes
from dpal.training.sampling import BLANK
from dpal.training.settings import AUTOMATIC, ComputeSettings, TrainingSettings
from dpal.training.sources import Readable, TensorSource, source_for

_TRIED = 4


class Learner:
    """Trains phase after phase and predicts in between."""

    def __init__(
        self,
        model: nn.Module,
        records: Readable,
        *,
        multi_label: bool,
        settings: TrainingSettings,
        compute: ComputeSettings | None = None,
    ) -> None:
        self.settings, self.compute = settings, compute or ComputeSettings()
        self.multi_label = multi_label
        self.device = device_for(self.compute)
        self.model = model.to(self.device)
        if self.device.type == "cuda":
            put_channels_last(self.model)
        self.records = records
        self.source = source_for(
            records, np.zeros(len(records), dtype=np.int64), device=self.device, scaling=settings.scaling
        )
        self.average = None if settings.average is None else WeightAverage(self.model, decay=settings.average)

    def learning_rate(self, steps: int) -> float:
        """The learning rate in a phase of so many steps."""
        return learning_rate_for(self.settings, self.model, steps=steps)

    @property
    def in_memory(self) -> bool:
        """Whether all records were read at the start. Otherwise they are read each time they are needed."""
        return isinstance(self.source, TensorSource)

    def save(self, path: Path) -> None:
        """Write the weights to a file."""
        save_weights(path, self.model, self.average)

    def load(self, path: Path) -> None:
        """Take the weights from a file."""
        load_weights(path, self.model, self.average)

    def weights(self) -> bytes:
        """The weights, as `save` writes them."""
        return weights_as_bytes(self.model, self.average)

    def take_weights(self, content: bytes) -> None:
        """Take the weights of a learner in another process."""
        load_weights_from(content, self.model, self.average)

    def try_one_step(self, classes: int, passes: int = 1, rows_per_unit: int = 1) -> None:
        """One private step on synthetic records with a copy of the model: what cannot work fails now, at no cost.

        With several rows per unit the step trains on units of so many records, the last of which has only one.
        """
        rng = np.random.default_rng(0)
        form = self.records.form
        count = _TRIED * rows_per_unit
        arrays = {name: _synthetic(array.dtype, array.shape, count, rng) for name, array in form.items()}
        values: Any = arrays.get("", arrays)
        targets = rng.integers(0, 2, (count, classes)).astype(np.float32) if self.multi_label else None
        units = np.arange(count).reshape(_TRIED, rows_per_unit)
        units[-1, 1:] = BLANK
        copy = Learner(
            deepcopy(self.model),
            _SyntheticRecords(values, form, count),
            multi_label=self.multi_label,
            settings=self.settings,
            compute=self.compute,
        )
        outputs = copy.logits_of(copy.records).shape[1]
        if outputs != classes:
            raise InvalidArgument("the number of the model's outputs", outputs, f"{classes}, one per class")
        if passes > 1:
            copy.logits(np.arange(_TRIED), passes=passes, randomness=SecureRandomness())
        try:
            copy.train(
                Phase(steps=1, noise_multiplier=1.0, expected_batch_size=2.0, sampling_probabilities=(1.0,)),
                [np.arange(_TRIED)],
                np.zeros(count, dtype=np.int64) if targets is None else targets,
                randomness=SecureRandomness(),
                description="trial step",
                after_step=lambda step: None,
                units=units if rows_per_unit > 1 else None,
            )
        except TrainingDiverged as error:
            allowed = "lower: a single step on synthetic records diverges with it. Nothing was charged"
            raise InvalidArgument("learning_rate", self.learning_rate(1), allowed) from error

    def train(
        self,
        phase: Phase,
        groups: Sequence[NDArray[np.int64]],
        targets: NDArray[np.generic],
        *,
        randomness: Randomness,
        description: str,
        after_step: Callable[[int], None],
        later_records: float = 0.0,
        units: NDArray[np.int64] | None = None,
        processes: Processes | None = None,
        pool_size: int | None = None,
        snapshots: Snapshots | None = None,
    ) -> PhaseResult:
        """One phase of the plan. `targets` has one row per record; only the rows of the groups are used.

        `pool_size` is how many records there are where only some are at hand: how many these are may be private.

        With `units`, a table of the records that each unit trains on, groups hold units (`train_phase`). Several
        `processes` must have the same weights at the end.
        """
        processes = processes or OneProcess()
        with self._deterministic(randomness):
            result = train_phase(
                self.model,
                phase,
                source=self.source.with_targets(torch.as_tensor(targets).to(self.device)),
                groups=groups,
                loss=loss_for(multi_label=self.multi_label),
                settings=self.settings,
                compute=self.compute,
                randomness=randomness,
                average=self.average,
                after_step=after_step,
                description=description,
                later_records=later_records,
                units=units,
                processes=processes,
                pool_size=pool_size,
                snapshots=snapshots,
            )
        if processes.count > 1:
            processes.require_same("their weights after the phase", hashlib.sha256(self.weights()).hexdigest())
        return result

    def logits(self, positions: NDArray[np.int64], *, passes: int, randomness: Randomness) -> NDArray[np.float32]:
        """The logits of records of the pool."""
        with self._deterministic(randomness), self._best():
            return logits(
                self.model,
                self.source,
                positions,
                passes=passes,
                precision=self.compute.precision,
                words="scoring the pool",
            )

    def logits_of(self, records: Readable) -> NDArray[np.float32]:
        """The logits of other records, such as a held-out set."""
        if len(records) == 0:
            raise DpalError("There is no record to predict for.")
        other = source_for(
            records, np.zeros(len(records), dtype=np.int64), device=self.device, scaling=self.settings.scaling
        )
        with self._best():
            return logits(self.model, other, np.arange(len(records)), precision=self.compute.precision)

    def predictor(self) -> nn.Module:
        """A copy of the model that predicts, for workers of another process."""
        with self._best():
            return deepcopy(self.model).cpu().eval()

    def export(self, path: Path) -> None:
        """Write the weights that predict, under the model's own names, for use without dpal: always the same bytes."""
        with self._best():
            state = {name: value.detach().cpu().contiguous().clone() for name, value in self.model.state_dict().items()}
        write_tensors(path, state)

    def export_onnx(self, path: Path) -> None:
        """Write the model that predicts as ONNX: from records as they are to logits."""
        with self._best():
            export_onnx(path, self.model, self.records.form, self.settings.scaling)

    def device_name(self) -> str:
        """The name of the device, for the record of where something ran."""
        return torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else self.device.type

    def _best(self) -> AbstractContextManager[None]:
        return nullcontext() if self.average is None else self.average.applied()

    @contextmanager
    def _deterministic(self, randomness: Randomness) -> Generator[None]:
        """Dropout uses torch's own generator. Here it is seeded from the step's randomness, so that a step repeats."""
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(int.from_bytes(randomness.bytes(7), "little"))
            yield


def device_for(compute: ComputeSettings) -> torch.device:
    """The device of the settings; by default a GPU where there is one."""
    if compute.device == AUTOMATIC:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(compute.device)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InvalidArgument("device", compute.device, f"cpu or auto: torch finds {_gpus()} on this machine")
    return device


def _gpus() -> str:
    count = torch.cuda.device_count()
    return "no GPU" if count == 0 else "one GPU, cuda:0," if count == 1 else f"{count} GPUs"


def try_settings(settings: TrainingSettings, compute: ComputeSettings) -> None:
    """One private step of a tiny model on synthetic images: settings that cannot train any model fail here."""
    images = np.zeros((_TRIED, 1, 32, 32), dtype=np.uint8)
    model = nn.Sequential(nn.Flatten(), nn.Linear(32 * 32, 2))
    records = _SyntheticRecords(images, {"": images[0]}, _TRIED)
    Learner(model, records, multi_label=False, settings=settings, compute=compute).try_one_step(2)


def put_channels_last(model: nn.Module) -> None:
    """Lay filters out in memory as images are on a GPU, where convolutions are then faster. Other parameters stay."""
    for parameter in model.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)


class _SyntheticRecords:
    """Records for a trial step. No real record may decide whether it succeeds."""

    def __init__(self, values: Any, form: Mapping[str, Any], count: int) -> None:
        self.values, self.form, self.count = values, form, count

    def __len__(self) -> int:
        return self.count

    bytes_each = 0

    def read(self, positions: NDArray[np.int64]) -> Any:
        if isinstance(self.values, dict):
            return {name: array[positions] for name, array in self.values.items()}
        return self.values[positions]


def _synthetic(dtype: np.dtype[Any], shape: tuple[int, ...], count: int, rng: np.random.Generator) -> NDArray[Any]:
    """Rows of this shape and dtype. Zeros and ones are valid token numbers."""
    if dtype.kind == "f":
        return rng.normal(size=(count, *shape)).astype(dtype)
    return rng.integers(0, 256 if dtype == np.uint8 else 2, (count, *shape)).astype(dtype)
