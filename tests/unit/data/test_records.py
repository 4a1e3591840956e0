"""What a record looks like is stated, never taken from a record."""

from pathlib import Path

import numpy as np
import pytest

from dpal.data import as_memory_map, from_arrays
from dpal.data.records import ArrayRecords, PartForm, Subset, TextRecords
from dpal.errors import BadData


def test_arrays_state_their_form_by_themselves(tmp_path: Path) -> None:
    records = ArrayRecords(np.zeros((5, 1, 4, 4), dtype=np.float32))
    assert records.form == {"": PartForm(dtype=np.dtype(np.float32), shape=(1, 4, 4))}
    assert Subset(records, np.array([3])).bytes_each == 64
    named = ArrayRecords({"tokens": np.zeros((5, 7), dtype=np.int32), "mask": np.zeros((5, 7), dtype=np.int8)})
    assert {name: part.shape for name, part in named.form.items()} == {"tokens": (7,), "mask": (7,)}
    assert named.bytes_each == 35
    pool = from_arrays(np.arange(24, dtype=np.uint8).reshape(6, 1, 2, 2), classes=2)
    stored = as_memory_map(pool, tmp_path)
    assert stored.records.form == pool.records.form
    assert np.array_equal(stored.records.read(np.arange(6)), pool.records.read(np.arange(6)))


def test_texts_have_no_form_before_they_are_numbers() -> None:
    with pytest.raises(BadData, match="tokenized"):
        _ = TextRecords([("fever",)]).form


@pytest.mark.parametrize("texts", [["abc", "def"], [("a",), ("b", "c")]])
def test_ragged_texts_are_refused(texts: list[tuple[str, ...]]) -> None:
    with pytest.raises(BadData, match="same number of texts"):
        TextRecords(texts)
