"""MedMNIST from tiny files of its official format."""

from pathlib import Path

import numpy as np
import pytest

from dpal.data import load_dataset
from dpal.errors import BadData, InvalidArgument, MissingData


@pytest.mark.parametrize(
    ("name", "size", "channels"), [("bloodmnist", 28, 3), ("bloodmnist", 64, 3), ("octmnist", 28, 1)]
)
def test_medmnist(tmp_path: Path, name: str, size: int, channels: int) -> None:
    shape = (5, size, size, 3) if channels == 3 else (5, size, size)
    arrays: dict[str, np.ndarray] = {}
    for seed, part in enumerate(("train", "val", "test")):
        arrays[f"{part}_images"] = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
        arrays[f"{part}_labels"] = np.arange(5, dtype=np.uint8)[:, None] % 4
    file = tmp_path / (f"{name}.npz" if size == 28 else f"{name}_{size}.npz")
    np.savez_compressed(file, **arrays)
    for part in ("train", "val", "test"):
        pool = load_dataset(name, part=part, size=size, folder=tmp_path)
        read = pool.records.read(np.arange(5))
        assert read.shape == (5, channels, size, size)
        assert np.array_equal(read[2, 0], arrays[f"{part}_images"][2].reshape(size, size, -1)[..., 0])
    with pytest.raises(MissingData, match=rf"{name}_224\.npz"):
        load_dataset(name, size=224, folder=tmp_path)
    with pytest.raises(InvalidArgument, match="28, 64, 128, 224"):
        load_dataset(name, size=32, folder=tmp_path)
    np.savez_compressed(file, **(arrays | {"train_images": arrays["train_images"].astype(np.float32)}))
    with pytest.raises(BadData, match="uint8"):
        load_dataset(name, size=size, folder=tmp_path)
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(BadData, match=file.name):
        load_dataset(name, size=size, folder=tmp_path)
