"""Memory maps of decoded images are whole or not there, and belong to one pool."""

import threading
from pathlib import Path

import numpy as np
import pytest
from pictures import FORM, folder_of, pixels, write_png

from dpal.data import Pool, as_memory_map, from_arrays, from_image_folder
from dpal.data.records import ArrayRecords, Positions, Values
from dpal.errors import BadData, DpalError


def test_a_memory_map_is_built_once_and_anew_when_files_change(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "images", ["a.png", "b.png", "c.png"])
    stored = as_memory_map(from_image_folder(folder, classes=2, **FORM), tmp_path / "maps")
    expected = np.stack([pixels(number).transpose(2, 0, 1) for number in range(3)])
    assert np.array_equal(stored.records.read(np.arange(3)), expected)
    (file,) = (tmp_path / "maps").iterdir()
    before = file.stat().st_mtime_ns
    as_memory_map(from_image_folder(folder, classes=2, **FORM), tmp_path / "maps")
    assert file.stat().st_mtime_ns == before
    write_png(folder / "b.png", pixels(9, side=12))
    again = as_memory_map(from_image_folder(folder, classes=2, **FORM), tmp_path / "maps")
    assert np.array_equal(again.records.read(np.array([1]))[0], pixels(9).transpose(2, 0, 1))


def test_a_memory_map_is_whole_or_not_there(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "images", ["a.png", "b.png"])
    (folder / "b.png").write_bytes(b"broken")
    with pytest.raises(BadData, match=r"'b\.png'"):
        as_memory_map(from_image_folder(folder, classes=2, **FORM), tmp_path / "maps")
    assert list((tmp_path / "maps").iterdir()) == []


def test_other_arrays_with_the_same_ids_get_a_memory_map_of_their_own(tmp_path: Path) -> None:
    for value in (0, 1):
        pool = from_arrays(np.full((3, 1, 2, 2), value, dtype=np.uint8), classes=2)
        read = as_memory_map(pool, tmp_path).records.read(np.arange(3))
        assert isinstance(read, np.ndarray)
        assert (read == value).all()


def test_a_memory_map_of_missing_images_names_the_record(tmp_path: Path) -> None:
    pool = from_image_folder(folder_of(tmp_path / "images", ["a.png", "b.png"]), classes=2, **FORM)
    (tmp_path / "images" / "b.png").unlink()
    with pytest.raises(BadData, match=r"record 'b\.png' is missing"):
        as_memory_map(pool, tmp_path / "maps")


def test_broken_or_impossible_memory_maps_are_clear(tmp_path: Path) -> None:
    pool = from_image_folder(folder_of(tmp_path / "images", ["a.png", "b.png"]), classes=2, **FORM)
    as_memory_map(pool, tmp_path / "maps")
    (file,) = (tmp_path / "maps").iterdir()
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(BadData, match=rf"{file.name} is broken.*Remove it"):
        as_memory_map(pool, tmp_path / "maps")
    (tmp_path / "a file").write_text("in the way")
    with pytest.raises(DpalError, match=r"cannot be written \(Not a directory\)|cannot be written \(File exists\)"):
        as_memory_map(pool, tmp_path / "a file")


class BuiltMeanwhile(ArrayRecords):
    """While these records are read for a memory map, somebody else builds the same one."""

    others: list[threading.Thread]

    def read(self, positions: Positions) -> Values:
        if len(positions) > 1 and self.others:
            other = self.others.pop()
            other.start()
            other.join()
        return ArrayRecords.read(self, positions)


def test_two_may_build_the_same_memory_map(tmp_path: Path) -> None:
    records = BuiltMeanwhile(np.arange(12, dtype=np.uint8).reshape(3, 1, 2, 2))
    pool = Pool(name="p", ids=np.array(["a", "b", "c"]), records=records, classes=("x",))
    object.__setattr__(records, "others", [threading.Thread(target=as_memory_map, args=(pool, tmp_path))])
    assert np.array_equal(as_memory_map(pool, tmp_path).records.read(np.arange(3)), records.arrays)
    assert not records.others
    assert [file.suffix for file in tmp_path.iterdir()] == [".npy"]
