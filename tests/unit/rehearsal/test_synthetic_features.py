"""Synthetic features: as hard as they say, and the same for the same seed."""

import numpy as np
import pytest

from dpal.rehearsal.synthetic_features import BEST_ACCURACY, as_targets, synthetic_features


@pytest.mark.parametrize("classes", [2, 8])
def test_the_best_classifier_is_right_as_often_as_stated(classes: int) -> None:
    names = [f"class {number}" for number in range(classes)]
    train, test = (
        synthetic_features(width=64, classes=names, records=20_000, seed=5, part=part) for part in ("train", "test")
    )
    rows, others = (np.asarray(pool.records.read(np.arange(len(pool))), dtype=np.float64) for pool in (train, test))
    # Every direction has the deviation 1 / root of its number: with equal deviations the nearest centre is best.
    scale = np.sqrt(np.arange(1, 65))
    centres = np.stack([(rows[train.labels == number] * scale).mean(axis=0) for number in range(classes)])
    distances = ((others * scale)[:, None, :] - centres[None]) ** 2
    right = float((distances.sum(axis=2).argmin(axis=1) == test.labels).mean())
    # The distances between random centres differ, so it is near the stated share, not at it.
    assert abs(right - BEST_ACCURACY) < 0.06


def test_the_same_seed_gives_the_same_rows_and_parts_differ() -> None:
    first, again, other = (
        synthetic_features(width=8, classes=["a", "b"], records=10, seed=1, part=part) for part in ("x", "x", "y")
    )
    rows = [np.asarray(pool.records.read(np.arange(10))) for pool in (first, again, other)]
    assert np.array_equal(rows[0], rows[1])
    assert not np.array_equal(rows[0], rows[2])


def test_targets_have_one_class_each() -> None:
    assert as_targets(np.array([1, 0]), 3).tolist() == [[0, 1, 0], [1, 0, 0]]


def test_one_class_needs_no_distance() -> None:
    assert len(synthetic_features(width=4, classes=["only"], records=5, seed=1, part="x")) == 5
