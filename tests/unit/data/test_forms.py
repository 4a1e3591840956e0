"""What a record looks like is stated, never taken from a record."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import pixels, write_png

from dpal.data import as_memory_map, from_arrays, from_hugging_face, from_image_folder, from_table, load_dataset
from dpal.data.records import ArrayRecords, PartForm, Subset, TextRecords
from dpal.errors import InvalidArgument

STATED = r"\(size, channels\).*channels=1 for grey, 3 for colour"


def scans(folder: Path) -> Path:
    """The first image is grey and small, the second in colour and wide."""
    write_png(folder / "ill" / "a.png", pixels(0, channels=1, side=9))
    write_png(folder / "healthy" / "b.png", np.repeat(pixels(1, side=12), 2, axis=1))
    return folder


@pytest.mark.parametrize("given", [{}, {"size": 8}, {"channels": 1}])
def test_size_and_channels_of_images_are_stated(tmp_path: Path, given: dict[str, int]) -> None:
    scans(tmp_path)
    (tmp_path / "t.csv").write_text("image\nill/a.png\n")
    with pytest.raises(InvalidArgument, match=STATED):
        from_image_folder(tmp_path, classes=2, **given)
    with pytest.raises(InvalidArgument, match=STATED):
        from_table(tmp_path / "t.csv", image="image", classes=2, **given)


@pytest.mark.parametrize("given", [{"size": 0}, {"size": True}, {"size": "64"}, {"channels": 2}, {"channels": 4}])
def test_impossible_sizes_and_channels_are_named(tmp_path: Path, given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(InvalidArgument, match=f"^{name} is"):
        from_image_folder(scans(tmp_path), classes=2, **{"size": 8, "channels": 1} | given)


@pytest.mark.parametrize("channels", [1, 3])
def test_images_take_the_stated_form_whatever_they_are(tmp_path: Path, channels: int) -> None:
    pool = from_image_folder(scans(tmp_path), classes=2, size=8, channels=channels)
    assert pool.records.form == {"": PartForm(dtype=np.dtype(np.uint8), shape=(channels, 8, 8))}
    read = pool.records.read(np.arange(2))
    assert isinstance(read, np.ndarray)
    assert read.shape == (2, channels, 8, 8)
    assert read.dtype == np.uint8


def test_the_form_is_known_without_any_record(tmp_path: Path) -> None:
    """Files that nobody can read: neither making the pool nor its form, nor its size in memory, looks at them."""
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(b"no image")
    pool = from_image_folder(tmp_path, classes=2, size=8, channels=3)
    assert pool.records.form[""].shape == (3, 8, 8)
    assert pool.records.subset(np.array([1])).form == pool.records.form
    assert pool.records.bytes_each == 3 * 8 * 8


def test_arrays_state_their_form_by_themselves(tmp_path: Path) -> None:
    records = ArrayRecords(np.zeros((5, 1, 4, 4), dtype=np.float32))
    assert records.form == {"": PartForm(dtype=np.dtype(np.float32), shape=(1, 4, 4))}
    assert Subset(records, np.array([3])).bytes_each == 64
    named = ArrayRecords({"tokens": np.zeros((5, 7), dtype=np.int32), "mask": np.zeros((5, 7), dtype=np.int8)})
    assert {name: part.shape for name, part in named.form.items()} == {"tokens": (7,), "mask": (7,)}
    assert named.bytes_each == 35
    pool = from_arrays(np.arange(24, dtype=np.uint8).reshape(6, 1, 2, 2), classes=2)
    stored = as_memory_map(pool, tmp_path)
    assert stored.records.form == pool.records.form
    assert np.array_equal(stored.records.read(np.arange(6)), pool.records.read(np.arange(6)))


def test_texts_have_no_form_before_they_are_numbers() -> None:
    with pytest.raises(InvalidArgument, match="tokenized"):
        _ = TextRecords([("fever",)]).form


def test_named_datasets_know_their_form() -> None:
    assert load_dataset("digits").records.form[""].shape == (1, 8, 8)


def test_classes_are_not_collected_from_folders(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"classes=\[\.\.\.\]") as caught:
        from_image_folder(scans(tmp_path), labels_from_folders=True, size=8, channels=1)
    assert "ill" not in str(caught.value)
    assert "healthy" not in str(caught.value)


def test_classes_that_a_library_collected_from_folders_are_not_taken(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    options: dict[str, Any] = {"split": "train", "image": "image", "label": "label", "size": 8, "channels": 1}
    with pytest.raises(InvalidArgument, match=r"classes=\[\.\.\.\]"):
        from_hugging_face(scans(tmp_path / "scans"), **options)
    for classes in (["healthy", "ill"], ["ill", "healthy"]):
        stated = from_hugging_face(tmp_path / "scans", classes=classes, **options)
        assert stated.labels is not None
        assert [classes[label] for label in stated.labels] == ["healthy", "ill"]
