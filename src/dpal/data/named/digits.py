"""The digits inside scikit-learn: 1,797 real 8 × 8 images, the embedded default."""

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
    """The split is ours, by id, since scikit-learn has none: 1,437 to learn from and 360 to test on."""
    if size != 8:
        raise InvalidArgument("size", size, "8 for digits")
    found = optional("sklearn.datasets", extra="data").load_digits()
    # 17 grey levels, 0 to 16, spread over a byte.
    images = np.round(found.images * (255 / 16)).astype(np.uint8)[:, None]
    ids = [f"digit-{number:04d}" for number in range(len(images))]
    whole = from_arrays(images, classes=10, labels=found.target, ids=ids, name="digits", class_counts_are_public=True)
    split = split_by_id(ids, {"test": _TEST, "train": -1}, salt="dpal digits")
    # In the order of their numbers, as the other datasets are.
    return whole.take(sorted(split.parts[part]), name=f"digits ({part})")


DIGITS = NamedDataset(parts=("train", "test"), sizes=(8,), read=read_digits)
