"""The digits that come with scikit-learn: 1,797 real 8 × 8 images, the default that needs no download."""

from pathlib import Path

import numpy as np

from dpal.data.arrays import from_arrays
from dpal.data.named.dataset import NamedDataset
from dpal.data.pool import Pool
from dpal.data.splits import split_by_id
from dpal.errors import InvalidArgument
from dpal.imports import optional

_TEST = 360


def read_digits(folder: Path, part: str, size: int) -> Pool:
    """The split is our own, by id, since scikit-learn has none: 1,437 for training and 360 for testing."""
    if size != 8:
        raise InvalidArgument("size", size, "8 for digits")
    digits = optional("sklearn.datasets", extra="data").load_digits()
    # 17 grey levels, 0 to 16, spread over a byte.
    images = np.round(digits.images * (255 / 16)).astype(np.uint8)[:, None]
    ids = [f"digit-{number:04d}" for number in range(len(images))]
    whole = from_arrays(images, classes=10, labels=digits.target, ids=ids, name="digits", class_counts_are_public=True)
    split = split_by_id(ids, {"test": _TEST, "train": -1}, salt="dpal digits")
    # Sorted by their numbers, as the other datasets are.
    return whole.take(sorted(split.parts[part]), name=f"digits ({part})")


DIGITS = NamedDataset(parts=("train", "test"), sizes=(8,), read=read_digits)
