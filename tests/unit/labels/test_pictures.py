"""Pictures for people: whole, upright, and with nothing of the file but pixels."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpal.data import Pool, from_arrays, load_dataset
from dpal.data.records import ArrayRecords, Subset, TextRecords
from dpal.data.sources import open_pool
from dpal.labels.pictures import are_pictures, as_png, picture_of


def shown(pool: Pool, row: int) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(as_png(picture_of(pool.records, row)))))


def test_an_array_is_shown_as_it_is() -> None:
    pool = load_dataset("digits")
    assert are_pictures(pool.records)
    np.testing.assert_array_equal(shown(pool, 3), pool.records.read(np.asarray([3]))[0][0])
    colour = np.random.default_rng(1).integers(0, 256, (2, 3, 5, 7), dtype=np.uint8)
    pool = from_arrays(colour, classes=["a", "b"])
    np.testing.assert_array_equal(shown(pool, 1), colour[1].transpose(1, 2, 0))


def test_a_file_is_shown_whole_and_only_its_pixels(tmp_path: Path) -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (6, 9, 3), dtype=np.uint8)
    file = tmp_path / "scan.png"
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_text("patient", "SMITH")
    Image.fromarray(pixels).save(file, pnginfo=info)
    options = {"folder": str(tmp_path), "classes": ["a", "b"], "size": 4, "channels": 3}
    pool = open_pool("image-folder", options)
    np.testing.assert_array_equal(shown(pool, 0), pixels)
    content = as_png(picture_of(Subset(pool.records, np.asarray([0])), 0))
    assert b"SMITH" not in content and b"SMITH" in file.read_bytes()


@pytest.mark.parametrize(
    "records",
    [
        TextRecords([("a",)]),
        ArrayRecords(np.zeros((2, 1, 4, 4), dtype=np.float32)),
        ArrayRecords(np.zeros((2, 4, 4), dtype=np.uint8)),
        ArrayRecords(np.zeros((2, 2, 4, 4), dtype=np.uint8)),
        ArrayRecords({"a": np.zeros((2, 1, 4, 4), dtype=np.uint8)}),
    ],
)
def test_other_records_are_no_pictures(records) -> None:
    assert not are_pictures(records)
