from pathlib import Path

import numpy as np
import pytest

from dpal.data import from_arrays, from_numpy_file
from dpal.data.pool import Pool
from dpal.data.records import ArrayRecords, TextRecords
from dpal.errors import BadData, InvalidArgument, MissingData

VALUES = np.arange(24, dtype=np.float32).reshape(6, 4)
IDS = ["f", "b", "c", "a", "e", "d"]


def some_pool(**changed: object) -> Pool:
    options = {"classes": ["no", "yes"], "labels": ["no", "yes", None, "yes", "no", ""], "ids": IDS} | changed
    return from_arrays(VALUES, **options)  # type: ignore[arg-type]


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
        ({"ids": ["a", "b", "a", "c", "b", "d"]}, r"2 id\(s\).*stand twice.*'a', 'b'"),
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


def test_classes_are_said_never_collected() -> None:
    with pytest.raises(InvalidArgument, match="never collected"):
        some_pool(classes=None)


@pytest.mark.parametrize("classes", ["yes,no", True])
def test_classes_are_no_text_to_be_taken_apart(classes: object) -> None:
    with pytest.raises(InvalidArgument, match="list of names"):
        some_pool(classes=classes, labels=None)
    assert some_pool(classes=np.int64(2), labels=None).classes == ("0", "1")


def test_true_and_false_are_names_or_0_and_1_never_positions() -> None:
    for classes, expected in ((["True", "False"], [0, 1]), (["false", "true"], [1, 0]), (2, [1, 0])):
        labels = from_arrays(VALUES[:2], classes=classes, labels=[True, np.False_]).labels
        assert labels is not None
        assert labels.tolist() == expected
    with pytest.raises(BadData, match="outside the classes yes, no"):
        from_arrays(VALUES[:2], classes=["yes", "no"], labels=[True, False])


@pytest.mark.parametrize("label", [1, "3"])
def test_numbers_for_classes_called_by_other_numbers_are_no_guess(label: object) -> None:
    names = from_arrays(VALUES[:1], classes=["1", "2"], labels=["2"]).labels
    assert names is not None
    assert names.tolist() == [1]
    for classes in (["1", "2"], ["1.0", "2.0"]):
        with pytest.raises(BadData, match="outside the classes"):
            from_arrays(VALUES[:1], classes=classes, labels=[label])


def test_several_labels_a_record() -> None:
    rows = [[1, 0, 0.8], None, [0, 0, 0]]
    pool = from_arrays(VALUES[:3], classes=3, labels=rows, multi_label=True)
    assert pool.labels is not None
    assert np.array_equal(pool.labels, np.array([[1, 0, 0.8], [np.nan] * 3, [0, 0, 0]], np.float32), equal_nan=True)
    assert pool.labelled().tolist() == [True, False, True]
    for wrong in ([1, 0], [1, 0, 1.5], [1, 0, float("nan")], "110"):
        with pytest.raises(BadData, match="record '1'"):
            from_arrays(VALUES[:3], classes=3, labels=[rows[0], wrong, rows[2]], multi_label=True)


def test_counts_of_classes_are_private_unless_said() -> None:
    with pytest.raises(InvalidArgument, match="private"):
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


def test_memory_maps_stay_on_disk(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    np.save(tmp_path / "y.npy", np.array([0, 1, 1, 0, 1, 0]))
    np.save(tmp_path / "ids.npy", np.array(IDS))
    pool = from_numpy_file(tmp_path / "x.npy", labels=tmp_path / "y.npy", ids=tmp_path / "ids.npy", classes=2)
    assert isinstance(pool.records.arrays, np.memmap)  # type: ignore[attr-defined]
    assert np.array_equal(pool.records.read(pool.positions(["a"])), VALUES[[3]])


def test_files_that_are_no_arrays_are_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY but not really")
    np.save(tmp_path / "objects.npy", np.array([{"run": "me"}], dtype=object), allow_pickle=True)
    for name in ("broken.npy", "objects.npy"):
        with pytest.raises(BadData, match=name):
            from_numpy_file(tmp_path / name, classes=2)
    with pytest.raises(MissingData, match=r"none\.npy"):
        from_numpy_file(tmp_path / "none.npy", classes=2)


def test_an_id_that_is_asked_for_is_not_trimmed() -> None:
    with pytest.raises(BadData, match=r"'a\\x00'"):
        some_pool().positions(["a\0"])


@pytest.mark.parametrize("values", [VALUES.tolist(), np.array(3.0)])
def test_what_is_no_array_of_rows_is_refused(values: object) -> None:
    with pytest.raises(InvalidArgument, match="numpy array with one row a record"):
        from_arrays(values, classes=2)  # type: ignore[arg-type]


def test_labels_given_directly_are_whole_numbers() -> None:
    with pytest.raises(BadData, match="float64 instead of class numbers"):
        Pool(
            name="p",
            ids=np.array(["a", "b"]),
            records=ArrayRecords(VALUES[:2]),
            classes=("no", "yes"),
            labels=np.array([np.nan, 0.5]),  # type: ignore[arg-type]
        )


@pytest.mark.parametrize("texts", [["abc", "def"], [("a",), ("b", "c")]])
def test_ragged_texts_are_refused(texts: list[tuple[str, ...]]) -> None:
    with pytest.raises(InvalidArgument, match="same number of texts"):
        TextRecords(texts)


def test_a_file_with_a_single_number_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    np.save(tmp_path / "y.npy", np.array(1))
    with pytest.raises(BadData, match=r"y\.npy holds one number"):
        from_numpy_file(tmp_path / "x.npy", labels=tmp_path / "y.npy", classes=2)
