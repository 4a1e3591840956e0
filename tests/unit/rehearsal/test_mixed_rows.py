"""Rows that were made of others: no two alike, with each class's means and variances as they were."""

import numpy as np

from dpal.data import Pool, from_arrays
from dpal.rehearsal.mixed_rows import MixedRows


def pool(multi_label: bool = False) -> Pool:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 400)
    rows = rng.normal(size=(400, 6)) * [1, 2, 3, 1, 1, 1] + labels[:, None] * 4.0
    targets = np.eye(2)[labels] if multi_label else labels
    return from_arrays(rows.astype(np.float32), classes=2, labels=targets, multi_label=multi_label)


def mixed(source: Pool, copies: int = 50) -> tuple[np.ndarray, np.ndarray]:
    positions = np.tile(np.arange(len(source)), copies)
    records = MixedRows.of(source, positions, np.random.default_rng(1))
    assert source.labels is not None
    return np.asarray(records.read(np.arange(len(records)))), source.labels[positions]


def test_the_first_copy_is_the_row_itself_and_no_two_copies_are_alike() -> None:
    source = pool()
    rows, _ = mixed(source, copies=3)
    assert np.array_equal(rows[:400], source.records.read(np.arange(400)))
    # A row may meet itself as the other parent, about three times in a thousand.
    assert len(np.unique(rows, axis=0)) > 1180


def test_means_and_variances_of_each_class_stay() -> None:
    source = pool()
    original = np.asarray(source.records.read(np.arange(400)))
    rows, labels = mixed(source)
    for label in (0, 1):
        before, after = original[source.labels == label], rows[labels == label]
        assert np.allclose(after.mean(axis=0), before.mean(axis=0), atol=0.12)
        assert np.allclose(after.std(axis=0), before.std(axis=0), rtol=0.05)


def test_a_row_reads_the_same_whatever_is_read_with_it() -> None:
    source = pool()
    records = MixedRows.of(source, np.tile(np.arange(400), 2), np.random.default_rng(1))
    together = np.asarray(records.read(np.array([450, 3, 799])))
    assert np.array_equal(records.read(np.array([799])), together[2:])
    assert records.form[""].shape == (6,)
    assert len(records) == 800


def test_with_several_labels_per_record_rows_are_repeated_as_they_are() -> None:
    source = pool(multi_label=True)
    rows, _ = mixed(source, copies=2)
    assert np.array_equal(rows[:400], rows[400:])
