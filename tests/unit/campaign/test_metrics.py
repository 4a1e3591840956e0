"""Metrics against values computed by hand."""

import numpy as np
import pytest

from dpal.campaign.metrics import metrics_of
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
