"""Records as pictures for people to look at: as the source has them, which may be larger than what the model sees."""

import io

import numpy as np
from numpy.typing import NDArray

from dpal.data.deep_images import Window
from dpal.data.images import ImageRecords
from dpal.data.records import Records, Subset, TextRecords
from dpal.imports import optional


def are_pictures(records: Records) -> bool:
    """Whether a person can look at the records: grey or colour images of 8 bits."""
    if isinstance(records, TextRecords):
        return False
    form = records.form.get("")
    return form is not None and form.dtype == np.uint8 and len(form.shape) == 3 and form.shape[0] in (1, 3)


def window_of_pictures(records: Records) -> Window | None:
    """The window through which images of more than 8 bits are seen, where one is stated."""
    base = records.whole if isinstance(records, Subset) else records
    return base.window if isinstance(base, ImageRecords) else None


def picture_of(records: Records, row: int, window: Window | None = None) -> NDArray[np.uint8]:
    """One image, (height, width) or (height, width, 3); through a window of one's own, if it is given."""
    base = records.whole if isinstance(records, Subset) else records
    position = int(records.positions[row]) if isinstance(records, Subset) else row
    if isinstance(base, ImageRecords):
        return base.picture(position, window)
    values = np.asarray(records.read(np.asarray([row])))[0].astype(np.uint8)
    return values[0] if len(values) == 1 else values.transpose(1, 2, 0)


def as_png(pixels: NDArray[np.uint8]) -> bytes:
    """The picture as a PNG file, without anything else that the source's file may say."""
    content = io.BytesIO()
    optional("PIL.Image", extra="data").fromarray(pixels).save(content, format="PNG")
    return content.getvalue()
