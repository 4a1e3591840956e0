"""Fashion-MNIST from tiny files of its official format."""

import gzip
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from dpal.data import load_dataset
from dpal.errors import BadData


def write_idx(file: Path, values: np.ndarray) -> None:
    header = struct.pack(">HBB", 0, 8, values.ndim) + struct.pack(f">{values.ndim}I", *values.shape)
    file.write_bytes(gzip.compress(header + values.astype(np.uint8).tobytes()))


def fashion_folder(folder: Path, count: int = 7) -> np.ndarray:
    folder.mkdir(exist_ok=True)
    images = np.random.default_rng(0).integers(0, 256, (count, 28, 28), dtype=np.uint8)
    for prefix in ("train", "t10k"):
        write_idx(folder / f"{prefix}-images-idx3-ubyte.gz", images)
        write_idx(folder / f"{prefix}-labels-idx1-ubyte.gz", np.arange(count) % 10)
    return images


def test_fashion_mnist(tmp_path: Path) -> None:
    images = fashion_folder(tmp_path)
    pool = load_dataset("fashion-mnist", folder=tmp_path)
    assert np.array_equal(pool.records.read(np.arange(7)), images[:, None])
    assert pool.labels is not None
    assert pool.labels.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert pool.ids[-1] == "train-00006"
    assert load_dataset("fashion-mnist", part="test", folder=tmp_path).ids[0] == "test-00000"


@pytest.mark.parametrize(
    "harm", ["cut short", "not gzip", "other length", "other type", "label", "other size", "overflow"]
)
def test_broken_idx_files_are_refused(tmp_path: Path, harm: str) -> None:
    fashion_folder(tmp_path)
    images, labels = tmp_path / "train-images-idx3-ubyte.gz", tmp_path / "train-labels-idx1-ubyte.gz"
    match harm:
        case "cut short":
            images.write_bytes(images.read_bytes()[:-30])
        case "not gzip":
            images.write_bytes(b"hello")
        case "other length":
            write_idx(labels, np.arange(6))
        case "other type":
            images.write_bytes(gzip.compress(b"\0\0\x0d\x01" + struct.pack(">I", 1) + b"\0\0\0\0"))
        case "other size":
            write_idx(images, np.zeros((7, 5, 5)))
        case "overflow":
            # 2^64 values: as a 64-bit number that is 0, which is what the file has.
            images.write_bytes(gzip.compress(struct.pack(">HBB4I", 0, 8, 4, *[1 << 16] * 4)))
        case _:
            write_idx(labels, np.full(7, 10))
    with pytest.raises(BadData):
        load_dataset("fashion-mnist", folder=tmp_path)


def test_a_small_file_that_unpacks_to_a_large_one_is_not_unpacked(tmp_path: Path) -> None:
    fashion_folder(tmp_path)
    file = tmp_path / "train-labels-idx1-ubyte.gz"
    file.write_bytes(gzip.compress(struct.pack(">HBBI", 0, 8, 1, 7) + bytes(50_000_000)))
    tracemalloc.start()
    with pytest.raises(BadData, match="not have exactly"):
        load_dataset("fashion-mnist", folder=tmp_path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10_000_000
