"""Units of a pool's records, and the table with a row of seats for every unit."""

import numpy as np
import pytest
from small_pools import some_pool

from dpal.data import Units, from_arrays, with_units
from dpal.data.units import EMPTY, mean_by_unit, seated_records, unit_table
from dpal.errors import BadData, InvalidArgument

IDS = ["a1", "b1", "a2", "c1", "a3"]
UNITS = ["a", "b", "a", "c", "a"]
PLACES = {record_id: place for place, record_id in enumerate(IDS)}


def test_every_unit_has_a_row_of_the_same_length() -> None:
    names, table = unit_table(UNITS, IDS, PLACES, 2)
    assert names.tolist() == ["a", "b", "c"]
    assert table.tolist() == [[0, 2], [1, EMPTY], [3, EMPTY]]


def test_withdrawn_records_leave_their_seats_empty() -> None:
    """No further record takes the seat: whose records are used must not depend on who was withdrawn."""
    left = {record_id: place for place, record_id in enumerate(IDS[1:])}
    assert unit_table(UNITS, IDS, left, 2)[1].tolist() == [[EMPTY, 1], [0, EMPTY], [2, EMPTY]]
    assert unit_table(UNITS, IDS, {"c1": 0}, 1)[1].tolist() == [[EMPTY], [EMPTY], [0]]


def test_only_the_records_that_are_asked_for_keep_their_seats() -> None:
    table = unit_table(UNITS, IDS, PLACES, 3)[1]
    assert seated_records(table, [2, 3]).tolist() == [[EMPTY, 2, EMPTY], [EMPTY] * 3, [3, EMPTY, EMPTY]]
    assert (seated_records(table, []) == EMPTY).all()


def test_a_mean_by_unit_is_of_its_own_records_alone() -> None:
    table = np.array([[0, 1, 2], [3, EMPTY, EMPTY], [EMPTY, EMPTY, EMPTY], [EMPTY, 4, EMPTY]])
    values = np.array([[0.1, 0.7, np.nan, np.inf], [0.2, np.nan, np.nan, 0.5], [0.3, np.inf, np.nan, np.nan]])
    assert mean_by_unit(values, table).tolist() == [(0.1 + 0.2 + 0.3) / 3, 0.7, 0.0, 0.5]


def test_a_pool_counts_its_units() -> None:
    pool = with_units(
        from_arrays(np.zeros((5, 1)), classes=2, ids=IDS), lambda name: name[0], name="patient", records=2
    )
    assert (pool.unit_count, pool.unit, pool.rows_per_unit) == (3, "patient", 2)
    part = pool.take(["a3", "c1"])
    assert part.units is not None
    assert part.units.of_records.tolist() == ["a", "c"]
    assert part.unit_count == 2
    plain = some_pool()
    assert (plain.unit_count, plain.unit, plain.rows_per_unit) == (6, "record", 1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"word": "record"}, "data.unit.name"),
        ({"word": " "}, "data.unit.name"),
        ({"word": "a\nb"}, "data.unit.name"),
        ({"rows": 0}, "data.unit.records"),
        ({"rows": True}, "data.unit.records"),
        ({"rows": 1001}, "data.unit.records"),
    ],
)
def test_wrong_words_and_numbers_are_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        Units(of_records=np.array(["a"]), **changed)  # type: ignore[arg-type]


def test_a_unit_for_every_record_is_needed() -> None:
    pool = from_arrays(np.zeros((5, 1)), classes=2, ids=IDS)
    with pytest.raises(BadData, match="4 units for 5 records"):
        with_units(pool, ["a"] * 4)
    with pytest.raises(BadData, match=r"2 record\(s\) of arrays have no unit: 'b1', 'c1'"):
        with_units(pool, ["a", None, "a", " ", "a"])
    with pytest.raises(BadData, match=r"1 record\(s\) of arrays have no unit: 'b1'"):
        with_units(pool, ["a", float("nan"), "a", "b", "a"])
    with pytest.raises(
        BadData, match=r"The unit of the record 'b1' of arrays is 7\.0\. Units are texts or whole numbers"
    ):
        with_units(pool, ["a", 7.0, "a", "b", "a"])


def test_names_that_look_the_same_are_one_unit() -> None:
    """Otherwise one person would be two in the pool, or in the pool and in the held-out set."""
    pool = from_arrays(np.zeros((5, 1)), classes=2, ids=IDS)
    assert with_units(pool, ["Müller", "Mu\u0308ller", " Müller ", "7", 7]).unit_count == 2
