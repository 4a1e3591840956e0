"""Classes and labels as people write them."""

import numpy as np
import pytest
from small_pools import VALUES, some_pool

from dpal.data import from_arrays
from dpal.errors import BadData, InvalidArgument


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


def test_umlauts_may_be_written_in_two_ways() -> None:
    """Folders on a Mac have decomposed names."""
    pool = from_arrays(VALUES[:2], labels=["mu\u0308de", "müde"], classes=["wach", "müde"])
    assert pool.labels is not None
    assert pool.labels.tolist() == [1, 1]
    with pytest.raises(InvalidArgument, match="names that all differ"):
        from_arrays(VALUES[:2], classes=["mu\u0308de", "müde"])
