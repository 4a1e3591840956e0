import numpy as np
import pytest

from dpal.randomness import IdColumn, Places

NAMES = ["a", "img-0001", "", "Müller", "日本", "x" * 40]


@pytest.mark.parametrize("names", [NAMES, [name for name in NAMES if name.isascii()], ["é"], []])
def test_ids_come_back_as_they_were(names: list[str]) -> None:
    array = np.asarray(names, dtype=np.str_)
    column = IdColumn.of(array)
    assert len(column) == len(names)
    assert column.names().tolist() == names
    assert column.raw() == [name.encode() for name in names]
    # A slice, a mask and places refer to the same buffer.
    assert column[1:].names().tolist() == names[1:]
    mask = np.arange(len(names)) % 2 == 0
    assert column[mask].names().tolist() == names[::2]
    assert column[np.flatnonzero(mask)].raw() == column[mask].raw()


def test_texts_in_an_array_of_objects_are_the_same_texts() -> None:
    assert IdColumn.of(np.asarray(["a", "b"], dtype=object)).raw() == IdColumn.of(np.asarray(["a", "b"])).raw()
    # A text and a number that look alike are two ids.
    assert len(set(IdColumn.of(np.asarray(["1", 1, 1.0, (1,)], dtype=object)).raw())) == 4
    assert len(set(IdColumn.of(np.arange(300)).raw())) == 300


def test_columns_are_joined_in_order() -> None:
    parts = [IdColumn.of(np.asarray(names, dtype=np.str_)) for names in (["aa", "b"], [], ["ccc", "dd", "e"])]
    assert IdColumn.joined([part[1:] for part in parts]).names().tolist() == ["b", "dd", "e"]
    assert len(IdColumn.joined([])) == 0


def test_records_without_ids_are_numbered() -> None:
    assert len(Places(10**12)) == 10**12
    assert len(set(Places(1000)[:].raw())) == 1000
    assert Places(1000)[7:9].raw() == Places(9)[7:].raw() == Places(9)[np.asarray([7, 8])].raw()


def test_many_names_are_read_from_one_copy() -> None:
    names = [f"id {number}" for number in range(3000)]
    assert IdColumn.of(np.asarray(names)).names().tolist() == names
    assert "id 7" not in repr(IdColumn.of(np.asarray(names)))
