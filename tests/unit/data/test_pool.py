"""Records by id."""

import numpy as np
import pytest
from small_pools import IDS, VALUES, some_pool

from dpal.data import from_arrays
from dpal.data.pool import Pool
from dpal.data.records import ArrayRecords
from dpal.errors import BadData, DpalError


def test_records_are_found_by_id_in_the_order_asked_for() -> None:
    pool = some_pool()
    assert pool.positions(["a", "f", "a"]).tolist() == [3, 0, 3]
    taken = pool.take(["d", "b"])
    assert taken.ids.tolist() == ["d", "b"]
    assert np.array_equal(taken.records.read(np.array([1, 0])), VALUES[[1, 5]])
    assert taken.labels is not None
    assert taken.labels.tolist() == [-1, 1]


def test_a_pool_of_a_pool_reads_the_same_records() -> None:
    twice = some_pool().take(["e", "d", "c"]).take(["c", "e"])
    assert np.array_equal(twice.records.read(np.arange(2)), VALUES[[2, 4]])


def test_labels_may_be_absent_for_some_or_all() -> None:
    pool = some_pool()
    assert pool.labelled().tolist() == [True, True, False, True, True, False]
    assert not some_pool(labels=None).labelled().any()


def test_unknown_ids_are_named() -> None:
    with pytest.raises(BadData, match=r"2 id\(s\) are not in the pool arrays: 'x', 'zz'"):
        some_pool().positions(["a", "x", "zz"])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ids": ["a", "b", "a", "c", "b", "d"]}, r"2 id\(s\).*occur more than once.*'a', 'b'"),
        ({"ids": ["a", "b", "", "c", "e", "d"]}, "empty id"),
        ({"ids": ["a", "b", 3.5, "c", "e", "d"]}, "record number 3"),
        ({"ids": ["a", "b"]}, "2 ids for 6 records"),
        ({"ids": ["a", "b", "c\0", "c", "e", "d"]}, r"record number 3.*'c\\x00'"),
        ({"ids": ["a", "b", "c", "cut \ud83d", "e", "d"]}, "record number 4"),
        ({"ids": ["a", "b", "c", "d", "e", "a whole note " * 1000]}, r"record number 6.*13,000 characters"),
        ({"labels": ["no", "maybe", "no", "no", "no", "perhaps"]}, r"2 label\(s\).*'b' has 'maybe', 'd' has 'perhaps'"),
        ({"labels": [0, 1, 2, 0, 0, 0]}, "'c' has 2"),
        ({"labels": [0, 1, -1, 0, 0, 0]}, "'c' has -1"),
        ({"labels": [0, 1, 0.5, 0, 0, 0]}, "'c' has 0.5"),
        ({"labels": [0, 1]}, "2 labels for 6 records"),
    ],
)
def test_bad_input_is_refused_with_the_id(changed: dict[str, object], message: str) -> None:
    with pytest.raises(BadData, match=message):
        some_pool(**changed)


def test_an_empty_pool_is_refused() -> None:
    with pytest.raises(BadData, match="empty"):
        from_arrays(np.empty((0, 4)), classes=2)


def test_counts_of_classes_are_private_unless_said() -> None:
    with pytest.raises(DpalError, match="private"):
        some_pool().class_counts()
    assert some_pool(class_counts_are_public=True).class_counts() == {"no": 2.0, "yes": 2.0}


def test_what_is_private_is_not_shown() -> None:
    shown = repr(some_pool(classes=["no", "yes"]))
    assert "yes" in shown
    for private in ("array(", "labels=", "'f'", "23."):
        assert private not in shown


def test_the_fingerprint_is_of_ids_alone() -> None:
    pool = some_pool()
    assert pool.fingerprint() == some_pool(labels=None).fingerprint()
    assert pool.fingerprint() != some_pool(ids=IDS[::-1]).fingerprint()
    # No two lists of ids run together into the same text.
    assert some_pool(ids=["ab", "c", "1", "2", "3", "4"]).fingerprint() != (
        some_pool(ids=["a", "bc", "1", "2", "3", "4"]).fingerprint()
    )


def test_an_id_that_is_asked_for_is_not_trimmed() -> None:
    with pytest.raises(BadData, match=r"'a\\x00'"):
        some_pool().positions(["a\0"])


def test_labels_given_directly_are_whole_numbers() -> None:
    with pytest.raises(BadData, match="float64 instead of class numbers"):
        Pool(
            name="p",
            ids=np.array(["a", "b"]),
            records=ArrayRecords(VALUES[:2]),
            classes=("no", "yes"),
            labels=np.array([np.nan, 0.5]),  # type: ignore[arg-type]
        )
