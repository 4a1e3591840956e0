"""What the report says about the held-out set, against counts by hand."""

from typing import Any

import numpy as np
import pytest

from dpal.campaign.facts import Evaluated
from dpal.campaign.metrics import evaluation_of
from dpal.reports.held_out_data import difference_in_words, held_out_data, measurements

LOGITS = np.array([[2, 1], [0, 1], [3, 0], [0, 2]], np.float32)


def test_counts_by_class_and_the_majority() -> None:
    fact = evaluation_of(1, LOGITS, np.array([0, 0, 0, 1]), multi_label=False, classes=("a", "b"))
    found = held_out_data([fact], ("a", "b"))
    assert found is not None
    assert (found["phase"], found["records"]) == (2, 4)
    assert (found["majority_class"], found["majority"], found["chance"]) == ("a", 0.75, 0.5)
    assert found["by_class"] == [
        {"class": "a", "records": 3, "right": 2, "recall": pytest.approx(2 / 3)},
        {"class": "b", "records": 1, "right": 1, "recall": 1.0},
    ]
    assert sum(one["answers"] for one in found["calibration"]) == 4
    assert measurements([fact])[0].keys() == {
        "phase",
        "records",
        "accuracy",
        "balanced_accuracy",
        "calibration_error",
    }


def test_several_labels_have_an_auc_by_class() -> None:
    targets = np.array([[1, 0], [0, 0], [1, 0], [0, 0]], np.float32)
    found = held_out_data([evaluation_of(0, LOGITS, targets, multi_label=True, classes=("a", "b"))], ("a", "b"))
    assert found is not None
    assert found["several_labels"]
    assert found["majority"] is None
    assert found["by_class"] == [{"class": "a", "records": 2, "auc": 1.0}, {"class": "b", "records": 0, "auc": None}]


def test_facts_of_an_older_dpal_are_shown_as_far_as_they_go() -> None:
    old = Evaluated(phase=0, records=9, metrics={"accuracy": 0.5, "balanced_accuracy": 0.4})
    found = held_out_data([old], ("a", "b"))
    assert found is not None
    assert (found["by_class"], found["calibration"], found["majority"], found["is_chance"]) == ([], [], None, False)
    assert measurements([old]) == [{"phase": 1, "records": 9, "accuracy": 0.5, "balanced_accuracy": 0.4}]
    assert held_out_data([], ("a",)) is None


def test_the_difference_to_a_baseline_in_words() -> None:
    data: dict[str, Any] = {"metrics": [{"phase": 1, "accuracy": 0.5}, {"phase": 2, "accuracy": 0.64}]}
    assert difference_in_words(data) is None
    data["baseline"] = {"campaign": "random-1", "metrics": [{"phase": 1, "accuracy": 0.612}]}
    words = difference_in_words(data)
    assert words is not None
    assert "64.0%; random-1, the baseline: 61.2%. That is +2.8 points" in words
    data["baseline"]["metrics"] = [{"phase": 1, "auc": 0.9}]
    assert difference_in_words(data) is None
