"""Encoded images, decoded when they are read, by several threads: Pillow decodes without Python's lock."""

import hashlib
import io
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpal.data.deep_images import DEEP_MODES, Window, dicom_picture, is_dicom, needs_window, window_of
from dpal.data.records import Form, PartForm, Positions, Records, Values, decoding_workers, file_stamp
from dpal.errors import BadData, InvalidArgument, MissingPackage
from dpal.imports import optional

# Modes with one obvious conversion to 8-bit grey or colour. 16-bit and float images have none, and are refused.
_PLAIN_MODES = {"1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr"}
_GREY_MODES = {"1", "L", "LA"}
# Only these decoders run: Pillow knows dozens more, and one of them hands its input to Ghostscript.
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
# Up to this many images, threads cost more than they save.
_FEW = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImageRecords(Records):
    """Images as files or as encoded bytes; read as uint8 of (records, channels, size, size).

    The middle square is cut out and resized. Colour becomes grey and grey becomes colour, as `channels` says.
    """

    encoded: Sequence[Path | bytes] = field(repr=False)
    ids: NDArray[np.str_] = field(repr=False)
    channels: int
    size: int
    # For more than 8 bits, and DICOM: which values are shown.
    window: Window | None = None

    def __len__(self) -> int:
        return len(self.encoded)

    @property
    def form(self) -> Form:
        return {"": PartForm(dtype=np.dtype(np.uint8), shape=(self.channels, self.size, self.size))}

    @property
    def preparation(self) -> str:
        kind = "grey" if self.channels == 1 else "colour"
        return (
            f"turned upright as EXIF says, cut to the middle square, resized to {self.size} × {self.size} pixels "
            f"(Pillow, bilinear), converted to {kind}"
            + ("" if self.window is None else f"; where there are more than 8 bits, {self.window.in_words()}")
        )

    def stamp(self) -> str:
        digest = hashlib.sha256()
        for name, encoded in zip(self.ids, self.encoded, strict=True):
            if isinstance(encoded, Path):
                try:
                    facts = encoded.stat()
                except OSError as error:
                    raise _missing(encoded, str(name)) from error
                digest.update(f"{facts.st_size},{facts.st_mtime_ns};".encode())
            else:
                digest.update(encoded)
        return digest.hexdigest()

    def stamps(self, positions: Positions) -> list[str]:
        images = (self.encoded[position] for position in positions.tolist())
        # Encoded bytes are in memory, and much faster to hash than to decode.
        return [
            file_stamp(image) if isinstance(image, Path) else hashlib.blake2b(image, digest_size=16).hexdigest()
            for image in images
        ]

    def read(self, positions: Positions) -> Values:
        images = np.empty((len(positions), self.channels, self.size, self.size), dtype=np.uint8)

        def fill(row: int) -> None:
            images[row] = self._decoded(int(positions[row]))

        if len(positions) <= _FEW:
            for row in range(len(positions)):
                fill(row)
        else:
            with ThreadPoolExecutor(decoding_workers()) as workers:
                list(workers.map(fill, range(len(positions))))
        return images

    def picture(self, position: int, window: Window | None = None) -> NDArray[np.uint8]:
        """The image as it is, uncropped, (height, width) or (height, width, 3): for people to look at.

        They may look through a window of their own.
        """
        image = opened(self.encoded[position], str(self.ids[position]), window or self.window)
        return np.asarray(image.convert("L" if self.channels == 1 else "RGB"))

    def _decoded(self, position: int) -> NDArray[np.uint8]:
        image = _middle(opened(self.encoded[position], str(self.ids[position]), self.window), self.size)
        pixels = np.asarray(image.convert("L" if self.channels == 1 else "RGB"))
        return pixels[None] if self.channels == 1 else pixels.transpose(2, 0, 1)


def image_records(
    encoded: Sequence[Path | bytes],
    ids: NDArray[np.str_],
    *,
    size: int | None,
    channels: int | None,
    window: Sequence[float] | None = None,
) -> ImageRecords:
    """Image records. Size and channels are stated: taken from an image, they would reveal something about it."""
    if size is None or channels is None:
        raise InvalidArgument(
            "the form of the images (size, channels)",
            (size, channels),
            "stated in full: size=64 for 64 × 64 pixels, and channels=1 for grey, 3 for colour. It is never taken from "
            "the images, because the published models reveal it",
        )
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("size", size, "a whole number of pixels, at least 1")
    if channels not in (1, 3):
        raise InvalidArgument("channels", channels, "1 for grey, 3 for colour")
    if len(encoded) == 0:
        raise BadData("The pool is empty: it has no images.")
    return ImageRecords(encoded=encoded, ids=ids, channels=channels, size=size, window=window_of(window))


def opened(encoded: Path | bytes, name: str, window: Window | None = None) -> Any:
    """The decoded image, turned upright as its EXIF says, or an error with the record's id.

    More than 8 bits, and DICOM, are seen through the window.
    """
    library = optional("PIL.Image", extra="data")
    # Not Path.is_file, which raises where a cell holds something too long for a path.
    if isinstance(encoded, Path) and not os.path.isfile(encoded):  # noqa: PTH113
        raise _missing(encoded, name)
    try:
        # Read whole: a decoder that fails would leave a file open.
        content = encoded.read_bytes() if isinstance(encoded, Path) else encoded
        if is_dicom(content):
            return library.fromarray(dicom_picture(content, name, window))
        image = library.open(io.BytesIO(content), formats=_FORMATS)
        # Phones append a preview to the photograph (MPO). In other files, any frame may be the one that is meant.
        frames = 1 if image.format == "MPO" else getattr(image, "n_frames", 1)
        many_bits = _has_many_bits(image)
        image.load()
        # People who label see it upright, so the model must too.
        optional("PIL.ImageOps", extra="data").exif_transpose(image, in_place=True)
        transparent = image.has_transparency_data and image.convert("RGBA").getchannel("A").getextrema()[0] < 255
    except (BadData, MissingPackage):
        raise
    # Pillow raises whatever its decoders do: OSError, SyntaxError, ValueError, struct.error and more.
    except Exception as error:
        where = f" ({encoded})" if isinstance(encoded, Path) else ""
        raise BadData(
            f"The image of record {name!r}{where} cannot be decoded ({type(error).__name__}). Repair or remove it."
        ) from error
    if image.mode in DEEP_MODES and frames == 1:
        if window is None:
            raise needs_window(name, f"has more than 8 bits (pixel format {image.mode})")
        return library.fromarray(window.shown(np.asarray(image)))
    if many_bits or image.mode not in _PLAIN_MODES:
        raise BadData(
            f"The image of record {name!r} has the pixel format {image.mode}{' of 16 bits' if many_bits else ''}. Only "
            "8-bit grey or colour is read, since any scaling of more bits would be a guess; convert it first."
        )
    if frames > 1:
        raise BadData(f"The image of record {name!r} has {frames:,} frames or pages. Keep the one you want.")
    if transparent:
        raise BadData(
            f"The image of record {name!r} has transparent pixels, and what is behind them would be a guess. Put it on "
            "a background first."
        )
    return image


def _missing(file: Path, name: str) -> BadData:
    return BadData(f"The image of record {name!r} is missing: there is no file {str(file)[:300]}.")


def _has_many_bits(image: Any) -> bool:
    """Pillow silently reduces 16 bits per colour to 8. Only how it is about to read the file shows it."""
    return any(
        ";16" in str(form) or (decoder.startswith("ppm") and isinstance(form, tuple) and form[1] > 255)
        for decoder, _, _, form in image.tile
    )


def _middle(image: Any, side: int) -> Any:
    """The middle square, resized."""
    shorter = min(image.width, image.height)
    left, top = (image.width - shorter) // 2, (image.height - shorter) // 2
    plain = image.convert("L" if image.mode in _GREY_MODES else "RGB")
    library = optional("PIL.Image", extra="data")
    # Cropped first: resizing a box of a larger image would blend in what is outside the box.
    square = plain.crop((left, top, left + shorter, top + shorter))
    return square.resize((side, side), library.Resampling.BILINEAR)
