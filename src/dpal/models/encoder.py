"""What every encoder has: a frozen public network that turns one record into a row of numbers.

A row depends on its record alone. On a CPU each record goes through the network by itself, which is also the fastest
way there; on a GPU batches always have the same size, and at most a row's last bits depend on its place in one.
"""

import hashlib
import importlib.util
import json
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from dpal.errors import BadData, DpalError, InvalidArgument, MissingPackage
from dpal.imports import import_path
from dpal.training.precision import tf32_allowed

IMAGES, TEXTS = "images", "texts"
_GPU_BATCH = 64
_GREY, _COLOUR = 1, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedFile:
    """A file inside an installed package, and the hash that it must have."""

    distribution: str
    package: str
    path: str
    sha256: str

    def checked(self) -> Path:
        """Where the file is. The package's own code is not run."""
        found = importlib.util.find_spec(self.package)
        if found is None or not found.submodule_search_locations:
            raise MissingPackage(
                f"This needs {self.distribution}, which is not installed: pip install 'dpal[encoders]'."
            )
        file = Path(found.submodule_search_locations[0], self.path)
        actual = file_sha256(file) if file.is_file() else None
        if actual != self.sha256:
            what = "is missing" if actual is None else f"has the SHA-256 {actual} instead of {self.sha256}"
            raise DpalError(f"{file} {what}. Install {self.distribution} again. Nothing was loaded.")
        return file

    def origin(self) -> str:
        """The package with its version."""
        try:
            return f"{self.distribution} {version(self.distribution)}"
        except PackageNotFoundError:
            return self.distribution


def file_sha256(file: Path) -> str:
    """The SHA-256 of a file."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


class Encoder(ABC):
    """A frozen network. Everything about it is public; what it makes of a record is as private as the record."""

    name: str
    reads: ClassVar[Literal["images", "texts"]]
    # The widths of the parts that a row is made of, such as the stages of a network.
    blocks: tuple[int, ...]
    # What the network was trained on, in words that finish the sentence "a public encoder trained on …".
    trained_on: str
    licence: str
    # Where the weights come from, and their hash.
    weights: str
    sha256: str
    network: nn.Module
    # For further threads.
    _copies: tuple["Encoder", ...] = ()

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return sum(self.blocks)

    def to(self, device: torch.device | str) -> "Encoder":
        """The same encoder, on this device."""
        self.network, self._copies = self.network.to(device), ()
        return self

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    def encode(self, batch: Any) -> NDArray[np.float32]:
        """One row per record: images as an array (records, channels, height, width), texts as tuples."""
        records = self._records(batch)
        self.network.eval()
        with tf32_allowed(False):
            return self._each_alone(records) if self.device.type == "cpu" else self._in_batches(records)

    def _each_alone(self, records: Sequence[Any]) -> NDArray[np.float32]:
        """Every record by itself, several at a time, each on one core: no result depends on the number of cores."""
        free: SimpleQueue[Encoder] = SimpleQueue()

        def alone(record: Any) -> NDArray[np.float32]:
            worker = free.get()
            try:
                return worker._encoded([record])
            finally:
                free.put(worker)

        with _one_core_each() as cores:
            workers = self._workers(min(cores, len(records)))
            for worker in workers:
                free.put(worker)
            with ThreadPoolExecutor(len(workers)) as threads:
                return np.concatenate(list(threads.map(alone, records)))

    def _workers(self, cores: int) -> Sequence["Encoder"]:
        """One encoder for each thread: itself and copies, which share its weights.

        Networks may keep what they work on in themselves, as old versions of the library transformers do: with one
        network in two threads, a record's row would be made of another record.
        """
        missing = cores - 1 - len(self._copies)
        if missing > 0:
            kept, self._copies = self._copies, ()
            weights = {id(parameter): parameter for parameter in self.network.parameters()}
            try:
                self._copies = (*kept, *(deepcopy(self, dict(weights)) for _ in range(missing)))
            except Exception:
                # What cannot be copied works in one thread.
                return [self]
        return [self, *self._copies[: cores - 1]]

    def _in_batches(self, records: Sequence[Any]) -> NDArray[np.float32]:
        rows: list[NDArray[np.float32]] = []
        for start in range(0, len(records), _GPU_BATCH):
            chosen = records[start : start + _GPU_BATCH]
            # Filled up: with fewer records, another algorithm might be used.
            full = [*chosen, *[chosen[0]] * (_GPU_BATCH - len(chosen))]
            rows.append(self._encoded(full)[: len(chosen)])
        return np.concatenate(rows)

    def _encoded(self, records: Sequence[Any]) -> NDArray[np.float32]:
        with torch.inference_mode():
            rows = self._features(records)
        if tuple(rows.shape) != (len(records), self.width):
            raise DpalError(
                f"The encoder {self.name} returned the shape {tuple(rows.shape)} for {len(records)} records. It must "
                f"be ({len(records)}, {self.width})."
            )
        return rows.float().cpu().numpy()

    @abstractmethod
    def _records(self, batch: Any) -> Sequence[Any]:
        """The batch's records one by one, checked and ready for `_features`."""

    @abstractmethod
    def _features(self, records: Sequence[Any]) -> Tensor:
        """One row per record, on the network's device."""

    def facts(self) -> dict[str, Any]:
        """What a reader of a report or the user of an exported head must know about the encoder."""
        return {
            "name": self.name,
            "weights": self.weights,
            "sha256": self.sha256,
            "trained_on": self.trained_on,
            "licence": self.licence,
            "reads": self.reads,
            "blocks": list(self.blocks),
        }

    def identity(self) -> str:
        """A hash of everything that decides what a record becomes."""
        return identity_of(self.facts())

    def code(self) -> tuple[str, ...]:
        """The import paths of the code that sees records."""
        return (import_path(self),)


# Facts that may be worded differently tomorrow.
_WORDS = ("name", "weights", "trained_on", "licence")


def identity_of(facts: Mapping[str, Any]) -> str:
    """The identity of the encoder with these facts."""
    deciding = {name: value for name, value in facts.items() if name not in _WORDS}
    return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()


class ImageEncoder(Encoder):
    """An encoder of images: bytes, or numbers from 0 to 1, with one channel or three."""

    reads = IMAGES
    side: int
    # Pixels from 0 to 255 become (pixel − mean) / deviation, one of each per channel.
    pixel_mean: tuple[float, float, float]
    pixel_deviation: tuple[float, float, float]

    def _records(self, batch: Any) -> Sequence[NDArray[np.generic]]:
        if not isinstance(batch, np.ndarray) or batch.ndim != 4 or batch.shape[1] not in (_GREY, _COLOUR):
            given = f"records of the shape {batch.shape[1:]}" if isinstance(batch, np.ndarray) else "other records"
            raise BadData(
                f"The encoder {self.name} reads images of 1 or 3 channels, (channels, height, width), but got {given}."
            )
        if batch.dtype != np.uint8 and batch.dtype.kind != "f":
            raise BadData(f"The encoder {self.name} reads bytes or numbers from 0 to 1, not {batch.dtype}.")
        return list(batch)

    def prepared(self, image: NDArray[np.generic]) -> Tensor:
        """One image as the network reads it: in colour, of the encoder's size, scaled."""
        pixels = torch.from_numpy(np.array(image, dtype=np.float32)).to(self.device)
        if image.dtype.kind == "f":
            pixels = pixels * 255
        pixels = pixels.expand(_COLOUR, -1, -1)[None]
        if tuple(pixels.shape[-2:]) != (self.side, self.side):
            # With antialias, as Pillow does it; bicubic curves leave the range where an edge is sharp.
            pixels = functional.interpolate(pixels, (self.side, self.side), mode="bicubic", antialias=True)
        pixels = pixels.clamp(0, 255)
        mean, deviation = (
            torch.tensor(values, device=self.device).reshape(1, _COLOUR, 1, 1)
            for values in (self.pixel_mean, self.pixel_deviation)
        )
        return ((pixels - mean) / deviation).contiguous(memory_format=torch.channels_last)

    def _features(self, records: Sequence[NDArray[np.generic]]) -> Tensor:
        return self.network(torch.cat([self.prepared(image) for image in records]))

    def facts(self) -> dict[str, Any]:
        return super().facts() | {
            "side": self.side,
            "interpolation": "bicubic with antialias, clipped to 0 to 255",
            "pixel_mean": list(self.pixel_mean),
            "pixel_deviation": list(self.pixel_deviation),
        }


@contextmanager
def _one_core_each() -> Generator[int]:
    """Inside, torch uses one core per thread. Gives the number of cores that it used before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield before
    finally:
        torch.set_num_threads(before)


def require_positive(name: str, value: object, least: int = 1) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidArgument(name, value, f"a whole number of at least {least}")
    return value


def weights_sha256(network: nn.Module) -> str:
    """A hash of a network's weights and their names."""
    digest = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        digest.update(f"{name},{value.dtype},{tuple(value.shape)};".encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
