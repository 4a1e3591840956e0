"""Labelled records on their way to the device: kept there whole where they fit, otherwise streamed."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpal.errors import InvalidArgument
from dpal.training.engines.engine import Batch, record_count, rows
from dpal.training.settings import Scaling

_CHUNK = 1024
# Physical batches that are read while the device works on one.
_AHEAD = 2
# Records may fill this share of the memory that is free on the device.
_SHARE_OF_MEMORY = 0.4


def scaled(batch: Batch, scaling: Scaling) -> Batch:
    """Bytes become numbers around zero; anything else is left as it is."""
    if isinstance(batch, Tensor):
        if batch.dtype != torch.uint8:
            return batch
        return batch.float().mul_(1 / (255 * scaling.deviation)).sub_(scaling.mean / scaling.deviation)
    return {name: scaled(array, scaling) for name, array in batch.items()}  # pyright: ignore[reportReturnType]


class Source(Protocol):
    """Labelled records by position."""

    def batch(self, positions: NDArray[np.int64]) -> tuple[Batch, Tensor]:
        """These records and their targets, on the device where training happens."""
        ...

    def stream(self, parts: Iterable[NDArray[np.int64]]) -> Iterator[tuple[Batch, Tensor]]:
        """One batch after the other. A source that has to read may read ahead."""
        ...


class TensorSource:
    """Records and targets that are tensors already, kept where and as they are: bytes stay bytes until used."""

    def __init__(
        self, inputs: Tensor | Mapping[str, Tensor], targets: Tensor, *, scaling: Scaling | None = None
    ) -> None:
        if record_count(inputs) != len(targets):
            raise InvalidArgument("the number of targets", len(targets), f"{record_count(inputs):,}, one a record")
        self.inputs, self.targets, self.scaling = inputs, targets, scaling or Scaling()

    def __len__(self) -> int:
        return len(self.targets)

    def batch(self, positions: NDArray[np.int64]) -> tuple[Batch, Tensor]:
        index = torch.from_numpy(positions).to(self.targets.device)
        return scaled(rows(self.inputs, index), self.scaling), self.targets[index]

    def stream(self, parts: Iterable[NDArray[np.int64]]) -> Iterator[tuple[Batch, Tensor]]:
        return (self.batch(part) for part in parts)

    def with_targets(self, targets: Tensor) -> "TensorSource":
        """The same records with other targets."""
        return TensorSource(self.inputs, targets, scaling=self.scaling)


class Readable(Protocol):
    """What a pool's records can do."""

    def __len__(self) -> int: ...

    @property
    def bytes_each(self) -> int: ...

    @property
    def form(self) -> Mapping[str, Any]:
        """The dtype and shape of every record, by the name of each array."""
        ...

    def read(self, positions: NDArray[np.int64]) -> Any:
        """An array with one row a record, or a dictionary of such arrays."""
        ...


class StreamingSource:
    """Records that are read when they are needed, some batches ahead of the device."""

    def __init__(self, records: Readable, targets: Tensor, scaling: Scaling) -> None:
        self.records, self.targets, self.scaling = records, targets, scaling

    def batch(self, positions: NDArray[np.int64]) -> tuple[Batch, Tensor]:
        return self._placed(positions, self.records.read(positions))

    def stream(self, parts: Iterable[NDArray[np.int64]]) -> Iterator[tuple[Batch, Tensor]]:
        """One batch after the other; the next ones are being read meanwhile."""
        waiting: list[tuple[NDArray[np.int64], Future[Any]]] = []
        with ThreadPoolExecutor(_AHEAD) as readers:
            for part in parts:
                waiting.append((part, readers.submit(self.records.read, part)))
                if len(waiting) > _AHEAD:
                    positions, values = waiting.pop(0)
                    yield self._placed(positions, values.result())
            for positions, values in waiting:
                yield self._placed(positions, values.result())

    def with_targets(self, targets: Tensor) -> "StreamingSource":
        """The same records with other targets."""
        return StreamingSource(self.records, targets, self.scaling)

    def _placed(self, positions: NDArray[np.int64], values: Any) -> tuple[Batch, Tensor]:
        device = self.targets.device
        inputs = scaled(_to_device(values, device), self.scaling)
        return inputs, self.targets[torch.from_numpy(positions).to(device)]


def source_for(
    records: Readable,
    targets: NDArray[np.generic] | Tensor,
    *,
    device: torch.device | str,
    scaling: Scaling | None = None,
    most_bytes: int | None = None,
) -> TensorSource | StreamingSource:
    """Records and targets for training, on the device where they fit in `most_bytes` (default: a share of the free)."""
    place = torch.device(device)
    if targets is None:  # pyright: ignore[reportUnnecessaryComparison] (the labels of a pool that has none)
        raise InvalidArgument("targets", None, "one a record; give zeros to predict for records without labels")
    aims = (targets if isinstance(targets, Tensor) else _tensor(np.asarray(targets))).to(place)
    if len(aims) != len(records):
        raise InvalidArgument("the number of targets", len(aims), f"{len(records):,}, one a record")
    limit = _free_bytes(place) * _SHARE_OF_MEMORY if most_bytes is None else most_bytes
    chosen = scaling or Scaling()
    if records.bytes_each * len(records) > limit:
        return StreamingSource(records, aims, chosen)
    return TensorSource(_whole(records, place), aims, scaling=chosen)


def _whole(records: Readable, device: torch.device) -> Batch:
    """All records, moved in parts, so that memory holds them once."""
    values: dict[str, Tensor] = {}
    single = False
    for start in range(0, len(records), _CHUNK):
        part = _to_device(records.read(np.arange(start, min(start + _CHUNK, len(records)))), device)
        single = isinstance(part, Tensor)
        named = {"": part} if isinstance(part, Tensor) else part
        for name, rows_here in named.items():
            if name not in values:
                shape, images = (len(records), *rows_here.shape[1:]), rows_here.is_cuda and rows_here.ndim == 4
                # On a GPU channels last, as convolutions like it there.
                order = torch.channels_last if images else torch.contiguous_format
                values[name] = torch.empty(shape, dtype=rows_here.dtype, device=device, memory_format=order)
            values[name][start : start + len(rows_here)] = rows_here
    return values[""] if single else values


def _to_device(values: Any, device: torch.device) -> Batch:
    if isinstance(values, Mapping):
        return {str(name): _tensor(part).to(device) for name, part in values.items()}
    return _tensor(values).to(device)


def _tensor(values: NDArray[np.generic]) -> Tensor:
    """A tensor of its own; a memory map that cannot be written would make torch warn."""
    plain = np.ascontiguousarray(values)
    if plain.dtype.kind == "f":
        plain = plain.astype(np.float32, copy=False)
    elif plain.dtype.kind == "u" and plain.dtype != np.uint8:
        # Two bytes fit in 32 bits, more do not.
        plain = plain.astype(np.int32 if plain.dtype.itemsize == 2 else np.int64)
    elif not plain.dtype.isnative:
        plain = plain.astype(plain.dtype.newbyteorder("="))
    return torch.from_numpy(plain if plain.flags.writeable else plain.copy())


def _free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        with Path("/proc/meminfo").open(encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        # Unknown: enough for the datasets of the field, little enough for a laptop.
        return 4 << 30
