"""Guidelines: words and pictures that the operator chose, and nothing of the files they came from."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from dpal.campaign.guidelines import Guidelines, example_picture, read_guidelines, write_guidelines
from dpal.errors import BadData, InvalidArgument, MissingData

PIXELS = np.random.default_rng(1).integers(0, 256, (5, 7, 3), dtype=np.uint8)


def picture(file: Path) -> Path:
    info = PngInfo()
    info.add_text("patient", "SMITH")
    Image.fromarray(PIXELS).save(file, pnginfo=info)
    return file


def test_they_come_back_and_replace_earlier_ones(tmp_path: Path) -> None:
    assert read_guidelines(tmp_path) == Guidelines()
    file = picture(tmp_path / "a.png")
    write_guidelines(tmp_path, "Look at the edge.\n<b>", [("ill: a dark edge", file), ("healthy", file)])
    assert read_guidelines(tmp_path) == Guidelines(
        text="Look at the edge.\n<b>", examples=("ill: a dark edge", "healthy")
    )
    content = example_picture(tmp_path, 1)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(content))), PIXELS)
    assert b"SMITH" in file.read_bytes() and b"SMITH" not in content
    for number in (-1, 2):
        with pytest.raises(MissingData):
            example_picture(tmp_path, number)
    write_guidelines(tmp_path, "Otherwise.")
    assert read_guidelines(tmp_path) == Guidelines(text="Otherwise.")
    with pytest.raises(MissingData):
        example_picture(tmp_path, 0)


def test_what_cannot_be_used_leaves_the_earlier_ones(tmp_path: Path) -> None:
    write_guidelines(tmp_path, "Before.")
    (tmp_path / "a.png").write_bytes(b"<svg onload='alert(1)'>")
    with pytest.raises(BadData, match="cannot be decoded"):
        write_guidelines(tmp_path, "After.", [("x", tmp_path / "a.png")])
    with pytest.raises(InvalidArgument, match="20,000"):
        write_guidelines(tmp_path, "x" * 20_001)
    assert read_guidelines(tmp_path).text == "Before."
