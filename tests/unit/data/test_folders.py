"""Pools from a folder of images."""

import os
from pathlib import Path

import numpy as np
import pytest
from pictures import FORM, folder_of, pixels, png, scans_in, write_png

from dpal.data import from_image_folder
from dpal.errors import BadData, InvalidArgument, MissingData


def test_classes_are_not_collected_from_folders(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"classes=\[\.\.\.\]") as caught:
        from_image_folder(scans_in(tmp_path), labels_from_folders=True, size=8, channels=1)
    assert "ill" not in str(caught.value)
    assert "healthy" not in str(caught.value)


def test_a_flat_folder_is_an_unlabelled_pool(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "scans", ["b.png", "deep/a.png", "c.PNG"])
    (folder / "notes.txt").write_text("not an image")
    (folder / ".hidden.png").write_bytes(b"junk")
    pool = from_image_folder(folder, classes=["healthy", "sick"], **FORM)
    assert pool.ids.tolist() == ["b.png", "c.PNG", "deep/a.png"]
    assert pool.labels is None
    read = pool.records.read(np.arange(3))
    assert read.dtype == np.uint8
    assert np.array_equal(read, np.stack([pixels(number).transpose(2, 0, 1) for number in (0, 2, 1)]))


def test_folders_may_name_the_classes(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, ["cat/1.png", "dog/1.png", "dog/2.png", "unknown.png"])
    pool = from_image_folder(folder, labels_from_folders=True, classes=["cat", "dog"], **FORM)
    assert pool.labels is not None
    assert pool.labels.tolist() == [0, 1, 1, -1]
    with pytest.raises(BadData, match=r"outside the classes cat.*'dog/1\.png' has 'dog'"):
        from_image_folder(folder, labels_from_folders=True, classes=["cat"], **FORM)


def test_empty_or_missing_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="no images"):
        from_image_folder(tmp_path, classes=2, **FORM)
    with pytest.raises(MissingData, match="nowhere"):
        from_image_folder(tmp_path / "nowhere", classes=2, **FORM)
    write_png(tmp_path / "a.png", pixels(0))
    with pytest.raises(InvalidArgument, match="no subfolders"):
        from_image_folder(tmp_path, labels_from_folders=True, classes=2, **FORM)


def test_linked_folders_are_read_once(tmp_path: Path) -> None:
    folder_of(tmp_path / "elsewhere", ["1.png"])
    # A folder may be called like an image.
    folder = folder_of(tmp_path / "scans", ["0.png", "odd.png/2.png"])
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    assert from_image_folder(folder, classes=2, **FORM).ids.tolist() == ["0.png", "linked/1.png", "odd.png/2.png"]
    (folder / "again").symlink_to(folder)
    with pytest.raises(BadData, match="occur twice"):
        from_image_folder(folder, classes=2, **FORM)


def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    folder_of(tmp_path, ["a.png"])
    (tmp_path / "b.png").symlink_to(tmp_path / "gone.png")
    with pytest.raises(BadData, match=r"record 'b\.png' is missing"):
        from_image_folder(tmp_path, classes=2, **FORM).records.read(np.arange(2))


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    folder_of(tmp_path, ["a.png"])
    (tmp_path / os.fsdecode(b"\xff.png")).write_bytes(png(pixels(1)))
    with pytest.raises(BadData, match=r"udcff\.png"):
        from_image_folder(tmp_path, classes=2, **FORM)
