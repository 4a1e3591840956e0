import math

import numpy as np
import pytest
from selections import seeded, threshold

from dpal.errors import InvalidArgument, NoSolution
from dpal.privacy.mechanisms import Exponential
from dpal.selection import LaplaceSelection, ThresholdSelection
from dpal.selection.grid import on_grid
from dpal.selection.threshold import private_step

SCORES = np.random.default_rng(5).beta(2, 3, 5000)


def test_a_surplus_is_retired_and_fewer_are_not_topped_up() -> None:
    wants = {
        size: threshold(size, high=0.5, low=0.1, epsilon=1.0, above=0.5).choose(
            SCORES, highest=1.0, randomness=seeded()
        )
        for size in (1000, 4000)
    }
    assert len(wants[1000].to_label) == 1000
    assert 300 < len(wants[1000].retired) < 700  # 1,500 expected
    assert len(wants[4000].retired) == 0
    assert len(wants[4000].to_label) == 1000 + len(wants[1000].retired)
    assert 0 < wants[1000].threshold < 1


def test_the_private_step_is_near_the_quantile() -> None:
    counts = np.bincount(on_grid(SCORES, highest=1.0, steps=65_535), minlength=65_536)
    for fraction in (0.1, 0.45, 0.9):
        step = private_step(counts, round(fraction * len(SCORES)), Exponential(epsilon=0.5), seeded())
        assert counts[step:].sum() / len(SCORES) == pytest.approx(fraction, abs=0.02)
    # All scores 0: nobody reaches any cut.
    assert private_step(np.append(10, np.zeros(65_535, dtype=np.int64)), 5, Exponential(epsilon=0.5), seeded()) >= 1


def test_probabilities_keep_their_promise() -> None:
    for query_size, unlabelled, epsilon in ((100, 10_000, 1.0), (400, 1000, 0.5), (800, 1000, 2.0), (1, 10**7, 3.0)):
        selection = ThresholdSelection.of(query_size=query_size, unlabelled=unlabelled, choice_epsilon=epsilon)
        high, low, above = selection.probability_high, selection.probability_low, selection.fraction_above
        assert above * high + (1 - above) * low == pytest.approx(query_size / unlabelled)
        assert max(high / low, (1 - low) / (1 - high)) == pytest.approx(math.exp(epsilon))


def test_the_aim_sets_the_fraction_above() -> None:
    overlap = ThresholdSelection.of(query_size=1000, unlabelled=20_000, choice_epsilon=1.0, aim="overlap")
    assert overlap.fraction_above == 0.05
    assert 0.05 * overlap.probability_high + 0.95 * overlap.probability_low == pytest.approx(0.05)


def test_parameters_that_do_not_belong_together_are_refused() -> None:
    planned = ThresholdSelection.of(query_size=100, unlabelled=1000, choice_epsilon=1.0)
    planned.require_planned_for("mean-score")
    with pytest.raises(InvalidArgument, match="fraction_above of a selection"):
        planned.require_planned_for("overlap")
    with pytest.raises(InvalidArgument, match="fraction_above is nan"):
        threshold(2, high=0.5, low=0.1, epsilon=1.0, above=float("nan"))


def test_nearly_everyone_cannot_be_taken() -> None:
    with pytest.raises(NoSolution, match="nearly all are wanted"):
        ThresholdSelection.of(query_size=1000, unlabelled=1000, choice_epsilon=1.0)


def test_it_lifts_more_than_laplace_at_the_same_ratio() -> None:
    selection = ThresholdSelection.of(query_size=1000, unlabelled=20_000, choice_epsilon=0.5)
    laplace = LaplaceSelection(query_size=1000, unlabelled=20_000, epsilon=0.5, grid_steps=1024)
    assert selection.lift() > laplace.lift()
