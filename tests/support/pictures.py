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
