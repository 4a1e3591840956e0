from pathlib import Path

import numpy as np
import pytest
from pictures import pixels, write_png
from PIL import Image

from dpal.data import as_memory_map, from_image_folder
from dpal.errors import BadData, InvalidArgument, MissingData


def folder_of(root: Path, names: list[str], **options: int) -> Path:
    for number, name in enumerate(names):
        write_png(root / name, pixels(number, **options))
    return root


def test_a_flat_folder_is_an_unlabelled_pool(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "scans", ["b.png", "deep/a.png", "c.PNG"])
    (folder / "notes.txt").write_text("not an image")
    (folder / ".hidden.png").write_bytes(b"junk")
    pool = from_image_folder(folder, classes=["healthy", "sick"])
    assert pool.ids.tolist() == ["b.png", "c.PNG", "deep/a.png"]
    assert pool.labels is None
    read = pool.records.read(np.arange(3))
    assert read.dtype == np.uint8
    assert np.array_equal(read, np.stack([pixels(number).transpose(2, 0, 1) for number in (0, 2, 1)]))


def test_folders_may_name_the_classes(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, ["cat/1.png", "dog/1.png", "dog/2.png", "unknown.png"])
    pool = from_image_folder(folder, labels_from_folders=True)
    assert pool.classes == ("cat", "dog")
    assert pool.labels is not None
    assert pool.labels.tolist() == [0, 1, 1, -1]
    with pytest.raises(BadData, match=r"outside the classes cat.*'dog/1\.png' has 'dog'"):
        from_image_folder(folder, labels_from_folders=True, classes=["cat"])


def test_a_size_crops_the_middle_and_resizes(tmp_path: Path) -> None:
    wide = np.zeros((10, 30, 3), dtype=np.uint8)
    wide[:, 10:20] = 200
    write_png(tmp_path / "wide.png", wide)
    read = from_image_folder(tmp_path, classes=2, size=5, channels=1).records.read(np.arange(1))
    assert read.shape == (1, 1, 5, 5)
    assert (read == 200).all()


def test_grey_stays_grey(tmp_path: Path) -> None:
    write_png(tmp_path / "grey.png", pixels(1, channels=1))
    assert from_image_folder(tmp_path, classes=2).records.read(np.arange(1)).shape == (1, 1, 12, 12)
    assert from_image_folder(tmp_path, classes=2, channels=3).records.read(np.arange(1)).shape == (1, 3, 12, 12)


def test_many_images_are_decoded_in_their_order(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, [f"{number:03d}.png" for number in range(60)])
    pool = from_image_folder(folder, classes=2)
    order = np.random.default_rng(5).permutation(60)
    expected = np.stack([pixels(int(number)).transpose(2, 0, 1) for number in order])
    assert np.array_equal(pool.records.read(order), expected)


@pytest.mark.parametrize("kind", ["cut short", "not an image", "missing", "another size", "16 bits"])
def test_a_bad_image_is_named(tmp_path: Path, kind: str) -> None:
    folder = folder_of(tmp_path, ["a.png", "bad.png"])
    pool = from_image_folder(folder, classes=2)
    bad = folder / "bad.png"
    match kind:
        case "cut short":
            bad.write_bytes(bad.read_bytes()[: len(bad.read_bytes()) // 2])
        case "not an image":
            bad.write_bytes(b"hello")
        case "missing":
            bad.unlink()
        case "another size":
            write_png(bad, pixels(1, side=13))
        case _:
            Image.fromarray(np.full((12, 12), 40_000, dtype=np.uint16)).save(bad)
    with pytest.raises(BadData, match=r"record 'bad\.png'"):
        pool.records.read(np.arange(2))


def test_empty_or_missing_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="no images"):
        from_image_folder(tmp_path, classes=2)
    with pytest.raises(MissingData, match="nowhere"):
        from_image_folder(tmp_path / "nowhere", classes=2)
    write_png(tmp_path / "a.png", pixels(0))
    with pytest.raises(InvalidArgument, match="no folders"):
        from_image_folder(tmp_path, labels_from_folders=True)


def test_a_memory_map_is_built_once_and_anew_when_files_change(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "images", ["a.png", "b.png", "c.png"])
    stored = as_memory_map(from_image_folder(folder, classes=2), tmp_path / "maps")
    expected = np.stack([pixels(number).transpose(2, 0, 1) for number in range(3)])
    assert np.array_equal(stored.records.read(np.arange(3)), expected)
    (file,) = (tmp_path / "maps").iterdir()
    before = file.stat().st_mtime_ns
    as_memory_map(from_image_folder(folder, classes=2), tmp_path / "maps")
    assert file.stat().st_mtime_ns == before
    write_png(folder / "b.png", pixels(9, side=12))
    again = as_memory_map(from_image_folder(folder, classes=2), tmp_path / "maps")
    assert np.array_equal(again.records.read(np.array([1]))[0], pixels(9).transpose(2, 0, 1))


def test_a_memory_map_is_whole_or_not_there(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "images", ["a.png", "b.png"])
    (folder / "b.png").write_bytes(b"broken")
    with pytest.raises(BadData, match=r"'b\.png'"):
        as_memory_map(from_image_folder(folder, classes=2), tmp_path / "maps")
    assert list((tmp_path / "maps").iterdir()) == []
