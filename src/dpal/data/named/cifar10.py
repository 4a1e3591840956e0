"""CIFAR-10: 50,000 + 10,000 colour 32 × 32 images, as the official binary or the official pickled batches."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpal.data.arrays import from_arrays
from dpal.data.named.dataset import NamedDataset
from dpal.data.named.download import OfficialFile
from dpal.data.pool import Pool
from dpal.errors import BadData

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_BINARY, _PICKLED = "cifar-10-batches-bin", "cifar-10-batches-py"
_PIXELS = 3 * 32 * 32


def _batches(part: str) -> tuple[str, ...]:
    return tuple(f"data_batch_{number}" for number in range(1, 6)) if part == "train" else ("test_batch",)


def cifar10_files(part: str, size: int) -> tuple[OfficialFile, ...]:
    return (
        OfficialFile(
            address="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            name="cifar-10-binary.tar.gz",
            checksum="md5:c32a1d4ab5d03f1284b67883e8d87530",
            unpacks_to=tuple(f"{_BINARY}/{name}.bin" for name in _batches(part)),
        ),
    )


def cifar10_pickles_are_there(folder: Path, part: str) -> bool:
    return all((folder / _PICKLED / name).is_file() for name in _batches(part))


def read_cifar10(folder: Path, part: str, size: int) -> Pool:
    """The binary batches, or where they are missing the pickled ones. Both give the same ids, labels and images."""
    images: list[NDArray[np.uint8]] = []
    labels: list[NDArray[np.uint8]] = []
    for name in _batches(part):
        binary = folder / _BINARY / f"{name}.bin"
        batch = _read_binary(binary) if binary.is_file() else _read_pickled(folder / _PICKLED / name)
        images.append(batch[0])
        labels.append(batch[1])
    pixels = np.concatenate(images).reshape(-1, 3, 32, 32)
    return from_arrays(
        pixels,
        classes=CLASSES,
        labels=np.concatenate(labels),
        ids=[f"{part}-{number:05d}" for number in range(len(pixels))],
        name=f"cifar10 ({part})",
        class_counts_are_public=True,
    )


def _read_binary(file: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    content = np.frombuffer(file.read_bytes(), dtype=np.uint8)
    if len(content) == 0 or len(content) % (1 + _PIXELS):
        raise BadData(f"{file} has {len(content):,} bytes, not a multiple of {1 + _PIXELS:,}: it is truncated.")
    rows = content.reshape(-1, 1 + _PIXELS)
    return rows[:, 1:], rows[:, 0]


class _PickledType:
    """Stands for numpy.dtype: its name is all that is looked at."""

    def __init__(self, name: object = None, *_: object) -> None:
        self.name = name

    def __setstate__(self, state: object) -> None:
        """Ignores the byte order, which single bytes do not have."""


class _PickledArray:
    """Stands for numpy.ndarray: keeps the shape and the bytes, from which an array is made here."""

    def __init__(self, *_: object) -> None:
        self.values = np.empty(0, dtype=np.uint8)

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, columns_first, content = state
        if not isinstance(kind, _PickledType) or kind.name not in (b"u1", "u1") or columns_first:
            raise pickle.UnpicklingError("it has an array that does not hold bytes")
        self.values = np.frombuffer(content, dtype=np.uint8).reshape(shape)


class _ArraysOnly(pickle.Unpickler):
    """Rebuilds arrays of bytes and plain containers. Anything else in a pickle could run code, so it is refused.

    numpy's own types are not handed out either: a pickle can ask numpy.ndarray for objects at any address in memory.
    """

    def find_class(self, module_name: str, global_name: str) -> Any:
        match module_name, global_name:
            case ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") | ("numpy", "ndarray"):
                return _PickledArray
            case "numpy", "dtype":
                return _PickledType
            case "_codecs", "encode":
                return super().find_class(module_name, global_name)
            case _:
                raise pickle.UnpicklingError(f"{module_name}.{global_name} is not an array")


def _read_pickled(file: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    try:
        with file.open("rb") as content:
            batch = _ArraysOnly(content, encoding="bytes").load()
        images = batch[b"data"].values
        labels = np.asarray(batch[b"labels"])
    # A broken pickle can raise almost anything.
    except Exception as error:
        raise BadData(f"{file} is not a pickled CIFAR-10 batch: {error}. No code in it was run.") from error
    fits = (
        isinstance(images, np.ndarray) and images.ndim == 2 and images.shape[1] == _PIXELS and labels.dtype.kind == "i"
    )
    if not fits or labels.shape != images.shape[:1] or not ((labels >= 0) & (labels < len(CLASSES))).all():
        raise BadData(f"{file} is not a CIFAR-10 batch: its data or labels have the wrong shape or type.")
    return images, labels.astype(np.uint8)


CIFAR10 = NamedDataset(
    parts=("train", "test"),
    sizes=(32,),
    read=read_cifar10,
    files=cifar10_files,
    other_form_is_there=cifar10_pickles_are_there,
)
