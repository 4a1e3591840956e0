"""Names of records and units as texts."""

import pytest

from dpal.data.ids import as_ids
from dpal.errors import BadData


def test_texts_and_whole_numbers_are_names() -> None:
    assert as_ids(["a", 7, "ü"]).tolist() == ["a", "7", "ü"]


@pytest.mark.parametrize("name", [1.5, None, True, "a\0", "cut \ud83d", "x" * 1025])
def test_anything_else_is_refused_by_its_place(name: object) -> None:
    with pytest.raises(BadData, match="record number 2"):
        as_ids(["a", name])
