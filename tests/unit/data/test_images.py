import io
import os
import struct
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest
from pictures import pixels, png, write_png
from PIL import Image

from dpal.data import Pool, as_memory_map, from_arrays, from_image_folder
from dpal.data.images import opened
from dpal.data.records import ArrayRecords, Positions, Values
from dpal.errors import BadData, DpalError, InvalidArgument, MissingData

# What pixels() makes, unless told otherwise.
FORM = {"size": 12, "channels": 3}


def folder_of(root: Path, names: list[str], **options: int) -> Path:
    for number, name in enumerate(names):
        write_png(root / name, pixels(number, **options))
    return root


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


def test_a_size_crops_the_middle_and_resizes(tmp_path: Path) -> None:
    wide = np.zeros((10, 30, 3), dtype=np.uint8)
    wide[:, 10:20] = 200
    write_png(tmp_path / "wide.png", wide)
    read = from_image_folder(tmp_path, classes=2, size=5, channels=1).records.read(np.arange(1))
    assert read.shape == (1, 1, 5, 5)
    assert (read == 200).all()


def test_many_images_are_decoded_in_their_order(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, [f"{number:03d}.png" for number in range(60)])
    pool = from_image_folder(folder, classes=2, **FORM)
    order = np.random.default_rng(5).permutation(60)
    expected = np.stack([pixels(int(number)).transpose(2, 0, 1) for number in order])
    assert np.array_equal(pool.records.read(order), expected)


@pytest.mark.parametrize("kind", ["cut short", "not an image", "missing", "16 bits"])
def test_a_bad_image_is_named(tmp_path: Path, kind: str) -> None:
    folder = folder_of(tmp_path, ["a.png", "bad.png"])
    pool = from_image_folder(folder, classes=2, **FORM)
    bad = folder / "bad.png"
    match kind:
        case "cut short":
            bad.write_bytes(bad.read_bytes()[: len(bad.read_bytes()) // 2])
        case "not an image":
            bad.write_bytes(b"hello")
        case "missing":
            bad.unlink()
        case _:
            Image.fromarray(np.full((12, 12), 40_000, dtype=np.uint16)).save(bad)
    with pytest.raises(BadData, match=r"record 'bad\.png'"):
        pool.records.read(np.arange(2))


def test_empty_or_missing_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="no images"):
        from_image_folder(tmp_path, classes=2, **FORM)
    with pytest.raises(MissingData, match="nowhere"):
        from_image_folder(tmp_path / "nowhere", classes=2, **FORM)
    write_png(tmp_path / "a.png", pixels(0))
    with pytest.raises(InvalidArgument, match="no folders"):
        from_image_folder(tmp_path, labels_from_folders=True, classes=2, **FORM)


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


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def test_photographs_are_turned_upright() -> None:
    photograph = Image.new("RGB", (8, 4))
    photograph.putpixel((0, 0), (255, 0, 0))
    facts = photograph.getexif()
    facts[0x0112] = 6  # turned by 90°
    image = opened(encoded(photograph, "PNG", exif=facts), "r")
    assert image.size == (4, 8)
    assert image.getpixel((3, 0)) == (255, 0, 0)


def png_of_16_bits(kind: int, channels: int) -> bytes:
    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", 1, 1, 16, kind, 0, 0, 0)
    row = b"\0" + struct.pack(f">{channels}H", *[65_535] * channels)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(row)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


@pytest.mark.parametrize(
    "content",
    [*(png_of_16_bits(*form) for form in ((0, 1), (2, 3), (4, 2), (6, 4))), b"P6 1 1 4095\n" + b"\1\2" * 3],
    ids=["grey", "colour", "grey and alpha", "colour and alpha", "ppm"],
)
def test_16_bits_are_refused_in_colour_too(content: bytes) -> None:
    with pytest.raises(BadData, match=r"record 'r'.*more bits would be a guess"):
        opened(content, "r")


def test_several_frames_are_refused() -> None:
    pages = [Image.new("L", (4, 4), number) for number in (1, 2)]
    for kind in ("TIFF", "GIF"):
        with pytest.raises(BadData, match="record 'r' has 2 frames"):
            opened(encoded(pages[0], kind, save_all=True, append_images=pages[1:]), "r")
        assert opened(encoded(pages[0], kind), "r").size == (4, 4)


def test_only_transparency_that_shows_is_refused() -> None:
    for mode, clear in (("RGBA", (9, 9, 9, 0)), ("LA", (9, 128))):
        image = Image.new(mode, (4, 4), (9,) * (len(mode) - 1) + (255,))
        assert opened(encoded(image, "PNG"), "r").convert("RGB").getpixel((0, 0)) == (9, 9, 9)
        image.putpixel((2, 2), clear)
        with pytest.raises(BadData, match="record 'r' has transparent pixels"):
            opened(encoded(image, "PNG"), "r")
    palette = Image.new("P", (4, 4), 1)
    palette.putpalette([0, 0, 0, 200, 100, 50])
    assert opened(encoded(palette, "PNG"), "r").convert("RGB").getpixel((0, 0)) == (200, 100, 50)
    with pytest.raises(BadData, match="transparent"):
        opened(encoded(palette, "PNG", transparency=1), "r")


def test_decoders_that_start_other_programs_do_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def ran(*_: object, **__: object) -> None:
        raise AssertionError("Ghostscript was called")

    postscript = encoded(Image.new("RGB", (4, 4)), "EPS")
    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", ran)
    with pytest.raises(BadData, match="UnidentifiedImageError"):
        opened(postscript, "r")


@pytest.mark.parametrize("content", [b"P1 1 1\n1\n", b"P2 1 1 255\n7\n", b"P5 1 1 15\n\3", b"P6 1 1 255\n\1\2\3"])
def test_plain_bitmaps_are_read(content: bytes) -> None:
    assert opened(content, "r").size == (1, 1)


@pytest.mark.parametrize("content", [b"", png(pixels(0))[:60]])
def test_files_cut_short_are_refused(content: bytes) -> None:
    with pytest.raises(BadData, match="record 'r' cannot be decoded"):
        opened(content, "r")


def test_linked_folders_are_read_once(tmp_path: Path) -> None:
    folder_of(tmp_path / "elsewhere", ["1.png"])
    # A folder may be called like an image.
    folder = folder_of(tmp_path / "scans", ["0.png", "odd.png/2.png"])
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    assert from_image_folder(folder, classes=2, **FORM).ids.tolist() == ["0.png", "linked/1.png", "odd.png/2.png"]
    (folder / "again").symlink_to(folder)
    with pytest.raises(BadData, match="there twice"):
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
