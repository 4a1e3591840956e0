"""CoreSet under differential privacy: the farthest record next, by the sequential exponential mechanism.

It is here to show why it fails: k picks leave each ε/k, and the picks become random (the paper, "Unsuitable
acquisition functions"). Its distances read labelled records too, so everyone pays for every selection.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpal.errors import InvalidArgument
from dpal.privacy import checks
from dpal.privacy.campaign_history import Selection
from dpal.privacy.mechanisms import PureDP
from dpal.randomness import Randomness

Array = NDArray[np.float64]
_STEPS = 2**16 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreSet:
    """Greedy k-center with each pick by weights exp(ε/k · distance / 2), distances at most 1."""

    name: ClassVar[str] = "coreset"
    reads_training_data: ClassVar[bool] = True
    query_size: int
    epsilon: float

    def __post_init__(self) -> None:
        checks.positive("epsilon", self.epsilon)
        if checks.count("query_size", self.query_size) < 1:
            raise InvalidArgument("query_size", self.query_size, "at least 1")

    @property
    def released(self) -> Selection:
        # Basic composition of the picks: a record moves its own distance and, once picked, everyone's, by at most 1.
        return Selection(choice=PureDP(epsilon=self.epsilon))

    def pick_probabilities(self, distances: Array) -> Array:
        """One pick's probabilities, for records at these distances from all labelled ones."""
        weights = np.exp(self.epsilon / self.query_size * distances / 2)
        return weights / weights.sum()

    def select(self, unlabelled: Array, labelled: Array, *, randomness: Randomness) -> NDArray[np.int64]:
        """Positions of the picked rows of `unlabelled`, in the order of the picks.

        Rows are embeddings. They are scaled into the ball of diameter 1, so that no distance exceeds 1.
        """
        if self.query_size > len(unlabelled):
            raise InvalidArgument("query_size", self.query_size, f"at most the {len(unlabelled):,} unlabelled records")
        points, centres = _in_ball(unlabelled), _in_ball(labelled)
        nearest = np.ones(len(points))
        for centre in centres:
            nearest = np.minimum(nearest, _distances(points, centre))
        unit = Fraction(self.epsilon) / self.query_size / 2 / _STEPS
        left = np.ones(len(points), dtype=bool)
        picks = np.empty(self.query_size, dtype=np.int64)
        for index in range(self.query_size):
            candidates = np.flatnonzero(left)
            penalties = _STEPS - np.floor(nearest[candidates] * _STEPS).astype(np.int64)
            picks[index] = candidates[randomness.exponential_picks(penalties, unit, 1)[0]]
            left[picks[index]] = False
            nearest = np.minimum(nearest, _distances(points, points[picks[index]]))
        return picks


def _in_ball(rows: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        inside = rows * np.minimum(1.0, 0.5 / norms)
    # A zero row stays at the centre, and so does one that is not finite.
    return np.where(np.isfinite(inside), inside, 0.0)


def _distances(points: Array, centre: Array) -> Array:
    return np.minimum(np.linalg.norm(points - centre, axis=1), 1.0)
