"""Records on the device, or streamed to it."""

import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pictures import pixels, write_png

from dpal.data import from_image_folder
from dpal.data.records import ArrayRecords
from dpal.errors import BadData, InvalidArgument
from dpal.training.settings import Scaling
from dpal.training.sources import StreamingSource, TensorSource, source_for

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 1, 4, 4), dtype=np.uint8)


TARGETS = np.arange(40) % 3


SOME = np.array([5, 0, 39, 5])


def scaled_by_hand(values: NDArray[np.uint8]) -> NDArray[np.float64]:
    return (values / 255 - 0.5) / 0.25


def test_what_fits_is_on_the_device_and_what_does_not_streams() -> None:
    records = ArrayRecords(IMAGES)
    kept = source_for(records, TARGETS, device="cpu", most_bytes=40 * 16)
    streamed = source_for(records, TARGETS, device="cpu", most_bytes=40 * 16 - 1)
    assert isinstance(kept, TensorSource)
    assert isinstance(streamed, StreamingSource)
    for source in (kept, streamed):
        batch, targets = source.batch(SOME)
        assert isinstance(batch, torch.Tensor)
        assert np.allclose(batch.numpy(), scaled_by_hand(IMAGES[SOME]), atol=1e-6)
        assert targets.tolist() == [2, 0, 0, 2]
    # Kept as bytes: four times as much fits.
    assert isinstance(kept.inputs, torch.Tensor)
    assert kept.inputs.dtype == torch.uint8


@pytest.mark.parametrize("most_bytes", [0, 10**6])
def test_a_stream_has_every_batch_in_order(most_bytes: int) -> None:
    source = source_for(ArrayRecords(IMAGES), TARGETS, device="cpu", most_bytes=most_bytes)
    parts = [np.arange(start, min(start + 7, 40)) for start in range(0, 40, 7)]
    seen = [(batch, targets) for batch, targets in source.stream(iter(parts))]
    assert len(seen) == len(parts)
    for part, (batch, targets) in zip(parts, seen, strict=True):
        assert isinstance(batch, torch.Tensor)
        assert np.allclose(batch.numpy(), scaled_by_hand(IMAGES[part]), atol=1e-6)
        assert targets.tolist() == TARGETS[part].tolist()
    assert list(source.stream(iter([]))) == []


def test_numbers_that_are_no_bytes_are_left_alone() -> None:
    values = np.linspace(-3, 3, 8).reshape(4, 2)
    batch, _ = source_for(ArrayRecords(values), np.zeros(4), device="cpu").batch(np.arange(4))
    assert isinstance(batch, torch.Tensor)
    assert batch.dtype == torch.float32
    assert np.allclose(batch.numpy(), values)


@pytest.mark.parametrize("kind", ["?", ">i2", ">i4", ">i8", ">u2", "u4", "u8", "f2", "f8", ">f4"])
def test_numbers_of_every_kind_keep_their_value(kind: str) -> None:
    largest = {"?": 1, ">i2": 2**15 - 1, ">i4": 2**31 - 1, ">i8": 2**40, ">u2": 2**16 - 1, "u4": 2**32 - 1, "u8": 2**40}
    values = np.array([[0], [largest.get(kind, 0.5)]]).astype(kind)
    values.flags.writeable = False
    batch, targets = source_for(ArrayRecords(values), values[:, 0], device="cpu").batch(np.arange(2))
    assert isinstance(batch, torch.Tensor)
    assert batch.tolist() == values.tolist()
    assert targets.tolist() == values[:, 0].tolist()


def test_a_stream_that_is_left_early_leaves_no_threads() -> None:
    source = source_for(ArrayRecords(IMAGES), TARGETS, device="cpu", most_bytes=0)
    before = threading.active_count()
    stream = source.stream(np.arange(40).reshape(-1, 4))
    next(iter(stream))
    assert threading.active_count() > before
    stream.close()  # type: ignore[attr-defined]
    # Threads of other tests may have ended in the meantime.
    assert threading.active_count() <= before


@pytest.mark.parametrize("most_bytes", [0, 10**6])
def test_an_empty_batch_has_no_records(most_bytes: int) -> None:
    source = source_for(ArrayRecords(IMAGES), TARGETS, device="cpu", most_bytes=most_bytes)
    batch, targets = source.batch(np.empty(0, dtype=np.int64))
    assert isinstance(batch, torch.Tensor)
    assert batch.shape == (0, 1, 4, 4)
    assert len(targets) == 0


def test_memory_maps_are_not_written_to(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", IMAGES)
    stored = np.load(tmp_path / "x.npy", mmap_mode="r")
    source = source_for(ArrayRecords(stored), TARGETS, device="cpu", most_bytes=0)
    source.batch(SOME)[0].add_(1)  # type: ignore[union-attr]
    assert np.array_equal(np.load(tmp_path / "x.npy"), IMAGES)


def test_a_bad_record_in_a_stream_is_named(tmp_path: Path) -> None:
    for number in range(12):
        write_png(tmp_path / f"{number:02d}.png", pixels(number))
    pool = from_image_folder(tmp_path, classes=2, size=12, channels=3)
    (tmp_path / "07.png").write_bytes(b"broken")
    source = source_for(pool.records, np.zeros(12), device="cpu", most_bytes=0)
    with pytest.raises(BadData, match=r"07\.png"):
        list(source.stream(np.arange(12).reshape(4, 3)))


def test_wrong_numbers_of_targets_and_scales_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="targets"):
        source_for(ArrayRecords(IMAGES), TARGETS[:5], device="cpu")
    with pytest.raises(InvalidArgument, match="without labels"):
        source_for(ArrayRecords(IMAGES), None, device="cpu")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="deviation"):
        Scaling(deviation=0.0)
