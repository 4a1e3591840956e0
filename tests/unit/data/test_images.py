import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import FORM, folder_of, pixels, png, scans_in, write_png
from PIL import Image

from dpal.data import from_image_folder, from_table
from dpal.data.images import opened
from dpal.data.records import PartForm
from dpal.errors import BadData, InvalidArgument


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
    with pytest.raises(BadData, match=r"record 'r'.*would be a guess"):
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


STATED = r"\(size, channels\).*channels=1 for grey, 3 for colour"


@pytest.mark.parametrize("given", [{}, {"size": 8}, {"channels": 1}])
def test_size_and_channels_of_images_are_stated(tmp_path: Path, given: dict[str, int]) -> None:
    scans_in(tmp_path)
    (tmp_path / "t.csv").write_text("image\nill/a.png\n")
    with pytest.raises(InvalidArgument, match=STATED):
        from_image_folder(tmp_path, classes=2, **given)
    with pytest.raises(InvalidArgument, match=STATED):
        from_table(tmp_path / "t.csv", image="image", classes=2, **given)


@pytest.mark.parametrize("given", [{"size": 0}, {"size": True}, {"size": "64"}, {"channels": 2}, {"channels": 4}])
def test_impossible_sizes_and_channels_are_named(tmp_path: Path, given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(InvalidArgument, match=f"^{name} is"):
        from_image_folder(scans_in(tmp_path), classes=2, **{"size": 8, "channels": 1} | given)


@pytest.mark.parametrize("channels", [1, 3])
def test_images_take_the_stated_form_whatever_they_are(tmp_path: Path, channels: int) -> None:
    pool = from_image_folder(scans_in(tmp_path), classes=2, size=8, channels=channels)
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


def test_how_images_are_prepared_is_said(tmp_path: Path) -> None:
    pool = from_image_folder(scans_in(tmp_path), classes=["healthy", "ill"], size=8, channels=1)
    for records in (pool.records, pool.records.subset(np.arange(1))):
        assert records.preparation is not None
        assert "middle square, resized to 8 × 8 pixels (Pillow, bilinear), converted to grey" in records.preparation
