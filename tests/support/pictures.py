"""Small real image files for tests of loaders."""

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def pixels(number: int, *, side: int = 12, channels: int = 3) -> NDArray[np.uint8]:
    """An image that tells its number from any other's."""
    grid = np.arange(side * side * channels).reshape(side, side, channels)
    return ((grid * (number + 3)) % 251).astype(np.uint8)


def png(image: NDArray[np.uint8]) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image.squeeze()).save(buffer, format="PNG")
    return buffer.getvalue()


def write_png(path: Path, image: NDArray[np.uint8]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png(image))
    return path


def scans_in(folder: Path) -> Path:
    """The first image is grey and small, the second in colour and wide."""
    write_png(folder / "ill" / "a.png", pixels(0, channels=1, side=9))
    write_png(folder / "healthy" / "b.png", np.repeat(pixels(1, side=12), 2, axis=1))
    return folder


# What pixels() makes, unless told otherwise.
FORM = {"size": 12, "channels": 3}


def folder_of(root: Path, names: list[str], **options: int) -> Path:
    for number, name in enumerate(names):
        write_png(root / name, pixels(number, **options))
    return root
