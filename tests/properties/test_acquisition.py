import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpal.selection.acquisition import Bald, Entropy, LeastConfidence, MinimumMargin, probabilities_from_logits

LOGITS = st.floats(-1e4, 1e4, width=32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data(), classes=st.integers(2, 12), records=st.integers(1, 5))
def test_scores_stay_in_their_range(dtype: type, data, classes: int, records: int) -> None:
    logits = data.draw(arrays(dtype, (3, records, classes), elements=LOGITS))
    for multi_label in (False, True):
        exact = probabilities_from_logits(logits, multi_label=multi_label)
        # Also as a model would hand them over, rounded to single precision.
        for probabilities in (exact, exact.astype(np.float32)):
            kinds = [
                Entropy(classes=classes, multi_label=multi_label),
                LeastConfidence(classes=classes, multi_label=multi_label),
            ]
            if not multi_label:
                kinds.append(MinimumMargin(classes=classes))
            for kind in kinds:
                scores = kind.scores(probabilities[0])
                assert scores.shape == (records,)
                assert ((scores >= 0) & (scores <= kind.highest)).all()
            bald = Bald(classes=classes, multi_label=multi_label, number_of_passes=3).scores(probabilities)
            assert ((bald >= 0) & (bald <= 1)).all()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(logits=arrays(np.float64, (4, 5), elements=st.floats(-20, 20)), data=st.data())
def test_the_order_of_classes_does_not_matter(logits: np.ndarray, data) -> None:
    order = data.draw(st.permutations(range(5)))
    probabilities = probabilities_from_logits(logits, multi_label=False)
    for kind in (Entropy(classes=5), LeastConfidence(classes=5), MinimumMargin(classes=5)):
        assert kind.scores(probabilities[:, order]) == pytest.approx(kind.scores(probabilities), abs=1e-12)
