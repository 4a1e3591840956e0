"""Metrics against values computed by hand."""

import itertools

import numpy as np
import pytest

from dpal.campaign.facts import Evaluated, from_text, to_text
from dpal.campaign.metrics import calibration_error, evaluation_of, majority, metrics_of, recalls
from dpal.errors import InvalidArgument


def test_metrics_by_hand() -> None:
    logits = np.array([[2, 1], [0, 1], [3, 0], [0, 2]], np.float32)
    found = metrics_of(logits, np.array([0, 0, 0, 1]), multi_label=False, classes=("a", "b"))
    assert found == {"accuracy": 0.75, "balanced_accuracy": pytest.approx((2 / 3 + 1) / 2)}
    targets = np.array([[1, 0], [0, 0], [1, 0], [0, 0]], np.float32)
    assert metrics_of(logits, targets, multi_label=True, classes=("a", "b")) == {"auc": 1.0}
    tied = np.zeros((4, 2), np.float32)
    assert metrics_of(tied, targets, multi_label=True, classes=("a", "b"), evaluated=["a"]) == {"auc": 0.5}
    with pytest.raises(InvalidArgument, match="'c'"):
        metrics_of(logits, targets, multi_label=True, classes=("a", "b"), evaluated=["c"])


def test_counts_by_class_by_hand() -> None:
    # Five records of three classes, of which nobody has the last. The answers are a, b, a, b, c.
    logits = np.array([[2, 1, 0], [0, 1, 0], [3, 0, 0], [0, 2, 0], [0, 0, 1]], np.float32)
    labels = np.array([0, 0, 0, 1, 1])
    fact = evaluation_of(2, logits, labels, multi_label=False, classes=("a", "b", "c"))
    assert (fact.phase, fact.records) == (2, 5)
    assert fact.metrics == metrics_of(logits, labels, multi_label=False, classes=("a", "b", "c"))
    assert (fact.class_records, fact.class_right, fact.class_answers) == ((3, 2, 0), (2, 1, 0), (2, 2, 1))
    assert recalls(fact) == (pytest.approx(2 / 3), 0.5, None)
    assert majority(fact) == (0, 0.6)
    assert from_text(fact.kind, to_text(fact)) == fact


def test_calibration_by_hand() -> None:
    # Two classes: a difference of log(9) is a confidence of 0.9, log(3) one of 0.75, and 0 one of 0.5.
    differences = np.log([9, 9, 9, 9, 3, 1]).astype(np.float32)
    logits = np.stack([differences, np.zeros(6, np.float32)], axis=1)
    fact = evaluation_of(0, logits, np.array([0, 0, 0, 1, 0, 1]), multi_label=False, classes=("a", "b"))
    # 0.9 may fall on either side of its bin's edge; no other bin is affected.
    assert fact.bin_answers[5] == fact.bin_answers[7] == 1
    assert sum(fact.bin_answers[8:]) == 4
    assert sum(fact.bin_right[8:]) == 3
    assert fact.bin_confidence[7] == pytest.approx(0.75)
    # (4 · |3/4 − 0.9| + |1 − 0.75| + |0 − 0.5|) / 6
    assert calibration_error(fact) == pytest.approx((0.6 + 0.25 + 0.5) / 6)
    sure = evaluation_of(0, 1e4 * logits, np.zeros(6, np.int64), multi_label=False, classes=("a", "b"))
    assert sure.bin_answers[9] == 5
    assert sure.bin_confidence[9] == 1.0


def test_several_labels_by_hand() -> None:
    logits = np.array([[2, 0], [-2, 0], [3, 0], [-3, 0]], np.float32)
    targets = np.array([[1, 0], [0, 0], [1, 0], [0, 0]], np.float32)
    fact = evaluation_of(0, logits, targets, multi_label=True, classes=("a", "b"))
    assert fact.class_records == (2, 0)
    assert fact.class_areas == (1.0, None)
    # Only the class that has an AUC is counted.
    assert sum(fact.bin_answers) == 4
    assert fact.bin_right == (0, 0, 0, 0, 0, 0, 0, 0, 1, 1)
    assert majority(fact) is None
    assert from_text(fact.kind, to_text(fact)) == fact


def test_the_deviation_of_the_mean_auc_is_that_of_all_ways_to_deal_out_the_scores() -> None:
    # Two classes that go together, with a tie; the rows of scores stay whole.
    scores = np.array([[1, 1], [2, 2], [2, 4], [3, 3], [5, 0]], np.float32)
    targets = np.array([[1, 1], [1, 0], [0, 0], [0, 1], [1, 1]], np.float32)
    areas = [
        metrics_of(scores[list(order)], targets, multi_label=True, classes=("a", "b"))["auc"]
        for order in itertools.permutations(range(5))
    ]
    fact = evaluation_of(0, scores, targets, multi_label=True, classes=("a", "b"))
    assert fact.auc_deviation == pytest.approx(float(np.std(areas)), abs=1e-6)
    assert np.mean(areas) == pytest.approx(0.5)


def test_without_counts_nothing_is_guessed() -> None:
    old = Evaluated(phase=0, records=10, metrics={"accuracy": 0.5})
    assert (majority(old), calibration_error(old), recalls(old)) == (None, None, ())
