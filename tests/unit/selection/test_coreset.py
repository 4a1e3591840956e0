import numpy as np
import pytest

from dpal.errors import InvalidArgument
from dpal.randomness import SeededRandomness
from dpal.selection.coreset import CoreSet


def seeded() -> SeededRandomness:
    return SeededRandomness(seed=1, nothing_is_private=True)


def test_the_papers_worked_example() -> None:
    # 100 picks with ε 1: three records at distances 0.1, 0.5 and 1 are as good as equal.
    probabilities = CoreSet(query_size=100, epsilon=1.0).pick_probabilities(np.array([0.1, 0.5, 1.0]))
    assert probabilities == pytest.approx([0.332611, 0.333277, 0.334111], abs=1e-6)
    # The paper prints 0.3325, 0.3333, 0.3342, up to 0.0001 off what its formula gives.
    assert probabilities == pytest.approx([0.3325, 0.3333, 0.3342], abs=1.2e-4)


def test_without_privacy_it_picks_the_farthest_and_with_it_anything() -> None:
    rng = np.random.default_rng(0)
    points, labelled = rng.normal(size=(60, 2)), np.array([[0.4, 0.0]])

    def spread(epsilon: float) -> float:
        picks = CoreSet(query_size=6, epsilon=epsilon).select(points, labelled, randomness=seeded())
        assert len(set(picks.tolist())) == 6
        chosen = points[picks] / np.linalg.norm(points[picks], axis=1, keepdims=True)
        return float(np.linalg.norm(chosen[:, None] - chosen[None], axis=-1)[np.triu_indices(6, 1)].min())

    assert spread(1e6) > 3 * spread(0.01)
    farthest = CoreSet(query_size=1, epsilon=1e6).select(points, labelled, randomness=seeded())[0]
    inside = points * np.minimum(1, 0.5 / np.linalg.norm(points, axis=1, keepdims=True))
    distances = np.linalg.norm(inside - labelled[0], axis=1)
    assert distances[farthest] == pytest.approx(distances.max(), abs=1e-3)


def test_rows_of_zeros_and_broken_rows_are_no_error() -> None:
    points = np.array([[0.0, 0.0], [np.nan, 1.0], [0.3, 0.4]])
    picks = CoreSet(query_size=3, epsilon=1.0).select(points, np.empty((0, 2)), randomness=seeded())
    assert sorted(picks.tolist()) == [0, 1, 2]


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InvalidArgument, match="query_size is 4"):
        CoreSet(query_size=4, epsilon=1.0).select(np.eye(3), np.eye(3), randomness=seeded())
    with pytest.raises(InvalidArgument, match="epsilon is 0"):
        CoreSet(query_size=4, epsilon=0.0)
