"""Where training gets its records from: kept on the device if they fit, streamed to it otherwise."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpal.errors import InvalidArgument
from dpal.training.batches import Batch, record_count, rows
from dpal.training.progress import counted
from dpal.training.settings import Scaling

_CHUNK = 1024
# How many physical batches are read ahead of the device.
_AHEAD = 2
# The share of the device's free memory that records may fill.
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

    def __len__(self) -> int:
        """How many records there are, drawn or not."""
        ...

    def batch(self, positions: NDArray[np.int64]) -> tuple[Batch, Tensor]:
        """These records and their targets, on the device where training happens."""
        ...

    def stream(self, batches: Iterable[NDArray[np.int64]]) -> Iterator[tuple[Batch, Tensor]]:
        """One batch after another. A source that reads files may read ahead."""
        ...


class TensorSource:
    """Records and targets that are tensors already. They stay as they are: bytes stay bytes until they are used."""

    def __init__(
        self, inputs: Tensor | Mapping[str, Tensor], targets: Tensor, *, scaling: Scaling | None = None
    ) -> None:
        if record_count(inputs) != len(targets):
            raise InvalidArgument("the number of targets", len(targets), f"{record_count(inputs):,}, one per record")
        self.inputs, self.targets, self.scaling = inputs, targets, scaling or Scaling()

    def __len__(self) -> int:
        return len(self.targets)

    def batch(self, positions: NDArray[np.int64]) -> tuple[Batch, Tensor]:
        index = torch.from_numpy(positions).to(self.targets.device)
        return scaled(rows(self.inputs, index), self.scaling), self.targets[index]

    def stream(self, batches: Iterable[NDArray[np.int64]]) -> Iterator[tuple[Batch, Tensor]]:
        return (self.batch(positions) for positions in batches)

    def with_targets(self, targets: Tensor) -> "TensorSource":
        """The same records with other targets."""
        return TensorSource(self.inputs, targets, scaling=self.scaling)


class Readable(Protocol):
    """The records of a pool, as training reads them."""

    def __len__(self) -> int: ...

    @property
    def bytes_each(self) -> int: ...

    @property
    def form(self) -> Mapping[str, Any]:
        """The dtype and shape of a record, for each named array."""
        ...

    def read(self, positions: NDArray[np.int64]) -> Any:
        """An array with one row per record, or a dictionary of such arrays."""
        ...


class StreamingSource:
    """Records that are read when they are needed, some batches ahead of the device."""

    def __init__(self, records: Readable, targets: Tensor, scaling: Scaling) -> None:
        self.records, self.targets, self.scaling = records, targets, scaling

    def __len__(self) -> int:
        return len(self.targets)

    def batch(self, positions: NDArray[np.int64]) -> tuple[Batch, Tensor]:
        return self._placed(positions, self.records.read(positions))

    def stream(self, batches: Iterable[NDArray[np.int64]]) -> Iterator[tuple[Batch, Tensor]]:
        """One batch after another, while the next ones are being read."""
        waiting: list[tuple[NDArray[np.int64], Future[Any]]] = []
        with ThreadPoolExecutor(_AHEAD) as readers:
            for batch in batches:
                waiting.append((batch, readers.submit(self.records.read, batch)))
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
    """Records and targets for training, on the device if they fit in `most_bytes` (default: a share of it)."""
    place = torch.device(device)
    if targets is None:  # pyright: ignore[reportUnnecessaryComparison] (the labels of a pool that has none)
        raise InvalidArgument("targets", None, "one per record; give zeros to predict for records without labels")
    labels = (targets if isinstance(targets, Tensor) else _tensor(np.asarray(targets))).to(place)
    if len(labels) != len(records):
        raise InvalidArgument("the number of targets", len(labels), f"{len(records):,}, one per record")
    limit = _free_bytes(place) * _SHARE_OF_MEMORY if most_bytes is None else most_bytes
    chosen = scaling or Scaling()
    # A large pool has no record at hand at first.
    if len(records) == 0 or records.bytes_each * len(records) > limit:
        return StreamingSource(records, labels, chosen)
    return TensorSource(_whole(records, place), labels, scaling=chosen)


def _whole(records: Readable, device: torch.device) -> Batch:
    """All records, moved in chunks, so that memory holds them once."""
    values: dict[str, Tensor] = {}
    single = False
    for start in counted(range(0, len(records), _CHUNK), "reading records", total=len(records), each=_CHUNK):
        chunk = _to_device(records.read(np.arange(start, min(start + _CHUNK, len(records)))), device)
        single = isinstance(chunk, Tensor)
        named = {"": chunk} if isinstance(chunk, Tensor) else chunk
        for name, rows_here in named.items():
            if name not in values:
                shape, images = (len(records), *rows_here.shape[1:]), rows_here.is_cuda and rows_here.ndim == 4
                # Channels last on a GPU, where convolutions are faster with it.
                order = torch.channels_last if images else torch.contiguous_format
                values[name] = torch.empty(shape, dtype=rows_here.dtype, device=device, memory_format=order)
            values[name][start : start + len(rows_here)] = rows_here
    return values[""] if single else values


def _to_device(values: Any, device: torch.device) -> Batch:
    if isinstance(values, Mapping):
        return {str(name): _tensor(array).to(device) for name, array in values.items()}
    return _tensor(values).to(device)


def _tensor(values: NDArray[np.generic]) -> Tensor:
    """A tensor of these values. A read-only memory map is copied, since torch would warn about it."""
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
        # Unknown: enough for the usual datasets, little enough for a laptop.
        return 4 << 30
