"""Each score against the paper's formula, by hand."""

import math

import numpy as np
import pytest

from dpal.errors import InvalidArgument
from dpal.selection.acquisition import (
    Bald,
    Entropy,
    LeastConfidence,
    MinimumMargin,
    probabilities_from_logits,
)
from dpal.selection.registry import ACQUISITIONS

THREE = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])


def test_least_confidence() -> None:
    assert LeastConfidence(classes=3).scores(THREE) == pytest.approx([0.5, 0.0, 2 / 3])
    assert LeastConfidence(classes=3).highest == pytest.approx(2 / 3)
    labels = np.array([[0.9, 0.5], [0.0, 1.0]])
    assert LeastConfidence(classes=2, multi_label=True).scores(labels) == pytest.approx([0.3, 0.0])


def test_minimum_margin() -> None:
    assert MinimumMargin(classes=3).scores(THREE) == pytest.approx([0.8, 0.0, 1.0])
    with pytest.raises(InvalidArgument, match="Use entropy or least-confidence"):
        MinimumMargin(classes=3, multi_label=True)


def test_entropy() -> None:
    by_hand = -(0.5 * math.log2(0.5) + 0.3 * math.log2(0.3) + 0.2 * math.log2(0.2)) / math.log2(3)
    assert Entropy(classes=3).scores(THREE) == pytest.approx([by_hand, 0.0, 1.0])
    assert Entropy(classes=3).clip == 0.8
    labels = np.array([[0.5, 1.0], [0.25, 0.25]])
    quarter = -(0.25 * math.log2(0.25) + 0.75 * math.log2(0.75))
    assert Entropy(classes=2, multi_label=True).scores(labels) == pytest.approx([0.5, quarter])


def test_bald() -> None:
    # Two sure passes that contradict each other disagree as much as can be; two equal ones not at all.
    passes = np.array([[[1.0, 0.0], [0.7, 0.3]], [[0.0, 1.0], [0.7, 0.3]]])
    bald = Bald(classes=2, number_of_passes=2)
    assert bald.scores(passes) == pytest.approx([1.0, 0.0])
    assert bald.clip == 0.5
    mixed = np.array([[[0.9, 0.1]], [[0.5, 0.5]]])

    def binary(p: float) -> float:
        return -(p * math.log2(p) + (1 - p) * math.log2(1 - p))

    assert bald.scores(mixed) == pytest.approx([binary(0.7) - (binary(0.9) + 1.0) / 2])
    with pytest.raises(InvalidArgument, match="cannot disagree"):
        Bald(classes=2, number_of_passes=1)


@pytest.mark.parametrize("multi_label", [False, True])
def test_logits_of_any_size(multi_label: bool) -> None:
    logits = np.array([[1e4, -1e4, 0.0], [-1e4, -1e4, -1e4]], dtype=np.float32)
    probabilities = probabilities_from_logits(logits, multi_label=multi_label)
    scores = Entropy(classes=3, multi_label=multi_label).scores(probabilities)
    assert np.isfinite(scores).all()
    assert scores[1] == pytest.approx(0.0 if multi_label else 1.0)
    broken = probabilities_from_logits(np.array([[np.nan, 0.0], [0.0, np.inf]]), multi_label=multi_label)
    assert np.isnan(broken).all()


@pytest.mark.parametrize("wrong", [np.zeros((2, 2)), np.zeros(3), np.zeros((2, 2, 3))])
def test_wrong_shapes_are_refused(wrong: np.ndarray) -> None:
    with pytest.raises(InvalidArgument, match="shape of the probabilities"):
        Entropy(classes=3).scores(wrong)


def test_a_broken_record_scores_lowest_and_nobody_hears_of_it() -> None:
    rows = np.array([[0.5, 0.6, 0.2], [1.5, -0.5, 0.0], [np.nan, 0.5, 0.5], [0.3, 0.3, 0.4], [np.inf, 0.0, 0.0]])
    for kind in (Entropy, LeastConfidence, MinimumMargin):
        scores = kind(classes=3).scores(rows)
        assert scores[[0, 1, 2, 4]].tolist() == [0.0] * 4
        assert scores[3] > 0.5
    # One broken pass is enough.
    passes = np.stack([np.tile([0.9, 0.05, 0.05], (2, 1)), np.tile([0.05, 0.05, 0.9], (2, 1))])
    passes[1, 0, 0] = np.nan
    scores = Bald(classes=3, number_of_passes=2).scores(passes)
    assert scores[0] == 0 < scores[1]
    # bfloat16's sums are off by a little, which is no reason to drop a record.
    assert Entropy(classes=3).scores(np.array([[0.33, 0.33, 0.33]]))[0] > 0.9


def test_an_empty_pool_has_no_scores() -> None:
    assert Entropy(classes=3).scores(np.zeros((0, 3))).shape == (0,)


def test_the_registry_has_the_papers_functions() -> None:
    assert set(ACQUISITIONS) == {"random", "least-confidence", "minimum-margin", "entropy", "bald"}
