"""Tables of units: what is refused, and that rows and weights have a public shape and follow from the unit alone."""

import numpy as np
import pytest
from small_units import ragged

from dpal.errors import DpalError
from dpal.training.sampling import BLANK
from dpal.training.units import Units, checked_units, padded

TABLE = np.array([[BLANK, 4, 7], [BLANK, BLANK, BLANK], [1, 2, 3], [9, BLANK, BLANK]])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.array([[1, 2], [3, 1]]), "occurs twice in the units"),
        (np.array([[1, 1], [3, 2]]), "occurs twice in the units"),
        (np.array([[1, -2]]), "at least 0 and below 10"),
        (np.array([[1, 10]]), "at least 0 and below 10"),
        (np.array([1, 2]), r"a table \(units, rows\)"),
        (np.empty((3, 0), dtype=np.int64), r"a table \(units, rows\)"),
        (np.array([[0.5, 1.0]]), r"a table \(units, rows\)"),
    ],
)
def test_a_table_has_every_record_once(table: np.ndarray, message: str) -> None:
    with pytest.raises(DpalError, match=message):
        checked_units(table, 10)


def test_empty_seats_repeat_the_units_own_first_record() -> None:
    assert padded(TABLE).tolist() == [[4, 4, 7], [BLANK] * 3, [1, 2, 3], [9, 9, 9]]
    units = Units.of_table(TABLE, 10)
    assert (len(units), units.rows) == (4, 3)
    assert units.positions(np.array([3, 0])).tolist() == [9, 9, 9, 4, 4, 7]


def test_weights_average_the_records_and_their_copies_and_nothing_else() -> None:
    units = Units.of_table(TABLE, 10)
    weights = units.row_weights(np.array([0, 2, 3]), 2)
    assert weights is not None
    assert weights.dtype == np.float32
    third = np.float32(1 / 6)
    expected = [0, 0, 0.25, 0.25, 0.25, 0.25, third, third, third, third, third, third, 0.5, 0.5, 0, 0, 0, 0]
    assert weights.tolist() == expected


def test_a_unit_without_records_takes_its_seat_as_a_blank() -> None:
    units = Units.of_table(TABLE, 10)
    assert units.that_teach(np.array([0, 1, BLANK, 3])).tolist() == [0, BLANK, BLANK, 3]
    assert units.that_teach(np.array([BLANK])).tolist() == [BLANK]


def test_one_column_is_the_same_as_records() -> None:
    alone, table = Units.of_single_records(6), Units.of_table(np.arange(6)[:, None], 6)
    assert alone.records.tolist() == table.records.tolist()
    assert alone.weights is table.weights is None
    assert alone.row_weights(np.array([2]), 3) is None


def test_nothing_shows_how_many_records_a_unit_has() -> None:
    assert repr(Units.of_table(ragged([1, 3]), 4)) == "Units()"
