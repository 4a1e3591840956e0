"""Images with more than 8 bits, and DICOM files: seen through a stated window, as radiologists look at them.

A window is stated, and never taken from a file: what a model sees must not depend on what was once set on a screen.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpal.errors import BadData, InvalidArgument
from dpal.imports import optional

# Pillow's modes of one channel with 16 or 32 bits.
DEEP_MODES = {"I", "I;16", "I;16B", "I;16L", "I;16N"}
_DICOM_PLACE, _DICOM_MARK = 128, b"DICM"


@dataclass(frozen=True, slots=True)
class Window:
    """The values that are shown: from center − width / 2, black, to center + width / 2, white."""

    center: float
    width: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.center) and np.isfinite(self.width) and self.width > 0):
            raise InvalidArgument("window", [self.center, self.width], "[center, width], with a width above 0")

    def shown(self, values: NDArray[np.generic]) -> NDArray[np.uint8]:
        """The values in 8 bits."""
        low = self.center - self.width / 2
        scaled = (values.astype(np.float64) - low) * 255 / self.width
        return np.rint(np.clip(scaled, 0, 255)).astype(np.uint8)

    def in_words(self) -> str:
        low, high = self.center - self.width / 2, self.center + self.width / 2
        return f"values from {low:g} to {high:g} shown from black to white"


def window_of(given: Sequence[object] | None) -> Window | None:
    """The window from [center, width]."""
    if given is None:
        return None
    numbers = [one for one in given if isinstance(one, int | float) and not isinstance(one, bool)]
    if len(numbers) != 2 or len(given) != 2:
        raise InvalidArgument("window", given, "[center, width], such as [40, 400]")
    return Window(float(numbers[0]), float(numbers[1]))


def is_dicom(content: bytes) -> bool:
    return content[_DICOM_PLACE : _DICOM_PLACE + len(_DICOM_MARK)] == _DICOM_MARK


def dicom_picture(content: bytes, name: str, window: Window | None) -> NDArray[np.uint8]:
    """The picture in a DICOM file: grey through the window, in the units that the file states, or colour."""
    pydicom, pixels = optional("pydicom", extra="dicom"), optional("pydicom.pixels", extra="dicom")
    try:
        dataset = pydicom.dcmread(io.BytesIO(content))
        if int(dataset.get("NumberOfFrames", 1)) != 1:
            raise BadData(f"The image of record {name!r} has several frames. Keep the one you want.")
        values: NDArray[Any] = pixels.pixel_array(dataset)
        is_grey = int(dataset.get("SamplesPerPixel", 1)) == 1
        if is_grey:
            values = pixels.apply_rescale(values, dataset)
        turned = dataset.get("PhotometricInterpretation", "") == "MONOCHROME1"
    except BadData:
        raise
    # pydicom raises whatever a broken or a compressed file leads to.
    except Exception as error:
        raise BadData(
            f"The DICOM image of record {name!r} cannot be decoded ({type(error).__name__}). If its pixels are "
            "compressed, write it uncompressed first."
        ) from error
    if not is_grey:
        if values.dtype != np.uint8:
            raise BadData(f"The DICOM image of record {name!r} has colours of more than 8 bits. Convert it first.")
        return values
    if window is None:
        raise needs_window(name, "is a DICOM file")
    shown = window.shown(values)
    # There, the lowest value is white.
    return 255 - shown if turned else shown


def needs_window(name: str, what: str) -> BadData:
    return BadData(
        f"The image of record {name!r} {what}. State which values are shown, from black to white, as center and width: "
        "window: [40, 400] in data.options (window=[40, 400] in Python). Any other scaling would be a guess."
    )
