"""Small pools: six rows of numbers, and a few texts."""

import numpy as np

from dpal.data import Pool, from_arrays
from dpal.data.records import TextRecords

VALUES = np.arange(24, dtype=np.float32).reshape(6, 4)
IDS = ["f", "b", "c", "a", "e", "d"]


def some_pool(**changed: object) -> Pool:
    options = {"classes": ["no", "yes"], "labels": ["no", "yes", None, "yes", "no", ""], "ids": IDS} | changed
    return from_arrays(VALUES, **options)  # type: ignore[arg-type]


TEXTS = [("a man runs .",), ("no fever",), ("cough . cough",), ("man sleeps",), ("a a a a",), ("unknown words",)]


def text_pool(texts: list[tuple[str, ...]]) -> Pool:
    ids = np.arange(len(texts)).astype(np.str_)
    labels = np.arange(len(texts)) % 3
    return Pool(name="notes", ids=ids, records=TextRecords(texts), classes=("x", "y", "z"), labels=labels)
