"""Synthetic features: rows around class centres, for rehearsals where no public records are at hand."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from dpal.data import Pool, from_arrays

# How often the best possible classifier is right.
BEST_ACCURACY = 0.9
# Classes differ in the directions in which rows vary most, as they do in a trained network.
_TELLING = 32


def synthetic_features(*, width: int, classes: Sequence[str], records: int, seed: int, part: str) -> Pool:
    """Labelled rows whose classes are equally frequent. The centres depend on `seed`, the rows also on `part`."""
    centres = np.random.default_rng(seed).normal(size=(len(classes), min(_TELLING, width)))
    centres *= _distance(len(classes)) / np.sqrt(2 * centres.shape[1])
    rng = np.random.default_rng([seed, *part.encode()])
    labels = rng.integers(0, len(classes), records)
    rows = rng.normal(size=(records, width))
    rows[:, : centres.shape[1]] += centres[labels]
    # Few directions hold most of the variance, and all rows have a large part in common.
    rows = 1.0 + rows / np.sqrt(np.arange(1, width + 1))
    return from_arrays(
        rows.astype(np.float16), classes=list(classes), labels=labels, name=f"synthetic features ({part})"
    )


def _distance(classes: int) -> float:
    """The distance between centres, in deviations, at which the best classifier is right for `BEST_ACCURACY`."""
    if classes < 2:
        return 1.0
    return float(brentq(lambda distance: _right(distance, classes) - BEST_ACCURACY, 0.01, 50.0))


def _right(distance: float, classes: int) -> float:
    """How often the nearest of equally distant centres is the right one: no other score exceeds the right one's."""
    shift = distance / np.sqrt(2)

    def density(score: float) -> float:
        return float(norm.pdf(score - shift) * norm.cdf(score) ** (classes - 1))

    return float(quad(density, -10, 10 + shift)[0])


def as_targets(labels: NDArray[np.int64], classes: int) -> NDArray[np.float32]:
    """Class numbers as rows of targets, for campaigns with several labels per record."""
    return np.eye(classes, dtype=np.float32)[labels]
