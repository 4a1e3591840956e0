"""Encoded images, decoded when they are read, by several threads at once: Pillow decodes outside Python's lock."""

import hashlib
import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpal.data.extras import optional
from dpal.data.records import Positions, Records, Values, decoding_workers
from dpal.errors import BadData, InvalidArgument

# Modes that become 8-bit grey or colour without a choice of ours. 16-bit and float images need one: refused.
_PLAIN_MODES = {"1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr"}
_GREY_MODES = {"1", "L", "LA"}
# Below this many images threads cost more than they give.
_FEW = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImageRecords(Records):
    """Images as files or as encoded bytes; read as uint8 of (records, channels, height, width).

    With a size, the middle square is cut out and resized. Without one, every image must have the first one's size.
    """

    encoded: Sequence[Path | bytes] = field(repr=False)
    ids: NDArray[np.str_] = field(repr=False)
    channels: int
    height: int
    width: int
    crop: bool

    def __len__(self) -> int:
        return len(self.encoded)

    @property
    def bytes_each(self) -> int:
        return self.channels * self.height * self.width

    def stamp(self) -> str:
        digest = hashlib.sha256()
        for each in self.encoded:
            if isinstance(each, Path):
                facts = each.stat()
                digest.update(f"{facts.st_size},{facts.st_mtime_ns};".encode())
            else:
                digest.update(each)
        return digest.hexdigest()

    def read(self, positions: Positions) -> Values:
        found = np.empty((len(positions), self.channels, self.height, self.width), dtype=np.uint8)

        def fill(row: int) -> None:
            found[row] = self._decoded(int(positions[row]))

        if len(positions) <= _FEW:
            for row in range(len(positions)):
                fill(row)
        else:
            with ThreadPoolExecutor(decoding_workers()) as workers:
                list(workers.map(fill, range(len(positions))))
        return found

    def _decoded(self, position: int) -> NDArray[np.uint8]:
        name = str(self.ids[position])
        image = opened(self.encoded[position], name)
        if self.crop:
            image = _middle(image, self.height)
        elif (image.height, image.width) != (self.height, self.width):
            raise BadData(
                f"The image of record {name!r} is {image.width} × {image.height}, others are {self.width} × "
                f"{self.height}. Give a size (size=128): then every image is cropped to its middle square and resized."
            )
        pixels = np.asarray(image.convert("L" if self.channels == 1 else "RGB"))
        return pixels[None] if self.channels == 1 else pixels.transpose(2, 0, 1)


def image_records(
    encoded: Sequence[Path | bytes], ids: NDArray[np.str_], *, size: int | None, channels: int | None
) -> ImageRecords:
    """Image records whose open questions (size, grey or colour) the first image answers."""
    if size is not None and size < 1:
        raise InvalidArgument("size", size, "at least 1")
    if channels not in (None, 1, 3):
        raise InvalidArgument("channels", channels, "1 (grey) or 3 (colour)")
    if len(encoded) == 0:
        raise BadData("The pool is empty: there is no image in it.")
    first = opened(encoded[0], str(ids[0]))
    if channels is None:
        channels = 1 if first.mode in _GREY_MODES else 3
    return ImageRecords(
        encoded=encoded,
        ids=ids,
        channels=channels,
        height=size or first.height,
        width=size or first.width,
        crop=size is not None,
    )


def opened(encoded: Path | bytes, name: str) -> Any:
    """The decoded image, or an error with the record's id."""
    library = optional("PIL.Image", extra="data")
    if isinstance(encoded, Path) and not encoded.is_file():
        raise BadData(f"The image of record {name!r} is missing: there is no file {encoded}.")
    try:
        # Read whole: a decoder that fails would leave a file open.
        image = library.open(io.BytesIO(encoded.read_bytes() if isinstance(encoded, Path) else encoded))
        image.load()
    # Pillow raises whatever its decoders do: OSError, SyntaxError, ValueError, struct.error and more.
    except Exception as error:
        where = f" ({encoded})" if isinstance(encoded, Path) else ""
        raise BadData(
            f"The image of record {name!r}{where} cannot be decoded ({type(error).__name__}). Mend or remove it."
        ) from error
    if image.mode not in _PLAIN_MODES:
        raise BadData(
            f"The image of record {name!r} has the pixel format {image.mode}. Only 8-bit grey or colour is read, since "
            "any scaling of more bits would be a guess; convert it first."
        )
    return image


def _middle(image: Any, side: int) -> Any:
    """The middle square, resized."""
    shorter = min(image.width, image.height)
    left, top = (image.width - shorter) // 2, (image.height - shorter) // 2
    plain = image.convert("L" if image.mode in _GREY_MODES else "RGB")
    library = optional("PIL.Image", extra="data")
    # Cut first: resizing a box of a larger image would let what lies outside into the margin.
    square = plain.crop((left, top, left + shorter, top + shorter))
    return square.resize((side, side), library.Resampling.BILINEAR)
