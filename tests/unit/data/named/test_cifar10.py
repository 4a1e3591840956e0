"""CIFAR-10 from tiny files of both of its official formats."""

import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from dpal.data import load_dataset
from dpal.errors import BadData


def cifar_rows(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.integers(0, 10, count, dtype=np.uint8), generator.integers(0, 256, (count, 3072), dtype=np.uint8)


CIFAR_NAMES = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]


def cifar_binary(folder: Path) -> None:
    (folder / "cifar-10-batches-bin").mkdir(parents=True)
    for seed, name in enumerate(CIFAR_NAMES):
        labels, images = cifar_rows(4, seed)
        rows = np.concatenate([labels[:, None], images], axis=1)
        (folder / "cifar-10-batches-bin" / f"{name}.bin").write_bytes(rows.tobytes())


def python_2_pickle(labels: list[int], images: np.ndarray) -> bytes:
    """A batch as Python 2 pickled it: protocol 2, byte strings as keys and inside the array."""
    binary = lambda text: b"T" + struct.pack("<I", len(text)) + text  # noqa: E731
    state = b"(K\x01(" + b"M" + struct.pack("<H", len(images)) + b"M" + struct.pack("<H", 3072) + b"t"
    dtype = (
        b"cnumpy\ndtype\n("
        + binary(b"u1")
        + b"K\x00K\x01tR(K\x03"
        + binary(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    )
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t" + binary(b"b") + b"tR"
    array += state + dtype + b"\x89" + binary(images.tobytes()) + b"tb"
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}(" + binary(b"data") + array + binary(b"labels") + numbers + b"u."


def cifar_pickled(folder: Path) -> None:
    (folder / "cifar-10-batches-py").mkdir(parents=True)
    for seed, name in enumerate(CIFAR_NAMES):
        labels, images = cifar_rows(4, seed)
        (folder / "cifar-10-batches-py" / name).write_bytes(python_2_pickle(labels.tolist(), images))


def test_cifar10_is_the_same_from_both_official_forms(tmp_path: Path) -> None:
    cifar_binary(tmp_path / "binary")
    cifar_pickled(tmp_path / "pickled")
    for part, count in (("train", 20), ("test", 4)):
        binary = load_dataset("cifar10", part=part, folder=tmp_path / "binary")
        pickled = load_dataset("cifar10", part=part, folder=tmp_path / "pickled")
        assert len(binary) == count
        assert binary.ids.tolist() == pickled.ids.tolist()
        assert np.array_equal(binary.labels, pickled.labels)  # type: ignore[arg-type]
        assert np.array_equal(binary.records.read(np.arange(count)), pickled.records.read(np.arange(count)))
    _, images = cifar_rows(4, 1)
    assert np.array_equal(
        load_dataset("cifar10", folder=tmp_path / "binary").records.read(np.arange(4, 8)), images.reshape(4, 3, 32, 32)
    )


class Malicious:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit('code from a pickle ran')",)


class Forged:
    """numpy would take these bytes for the addresses of objects, and look there."""

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return np.ndarray, ((4,), np.dtype("O"), b"A" * 32)


@pytest.mark.parametrize(
    "evil",
    [
        Malicious(),
        {b"data": Malicious(), b"labels": [1]},
        {b"data": print},
        {b"data": Forged(), b"labels": Forged()},
        {b"data": np.zeros((4, 3072), dtype=np.uint8), b"labels": Forged()},
        {b"data": np.zeros((4, 3072), dtype=np.uint8), b"labels": ["1", "2", "3", "4"]},
        {b"data": np.array([None]), b"labels": [1]},
        [1],
        None,
    ],
)
def test_pickles_run_nothing(tmp_path: Path, evil: object) -> None:
    cifar_pickled(tmp_path)
    # Python 2's newest protocol, as the official files have.
    (tmp_path / "cifar-10-batches-py" / "test_batch").write_bytes(pickle.dumps(evil, protocol=2))
    with pytest.raises(BadData, match="test_batch"):
        load_dataset("cifar10", part="test", folder=tmp_path)


def test_cut_or_wrong_cifar_batches_are_refused(tmp_path: Path) -> None:
    cifar_binary(tmp_path)
    file = tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(BadData, match=r"data_batch_3.*truncated"):
        load_dataset("cifar10", folder=tmp_path)
    file.write_bytes(bytes([10]) + whole[1:])
    with pytest.raises(BadData, match=r"outside the classes.*'train-00008' has"):
        load_dataset("cifar10", folder=tmp_path)
