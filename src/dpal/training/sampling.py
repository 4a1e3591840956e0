"""Which records take part in a step: each by a coin of its own group's probability, and nobody else decides."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpal.errors import InvalidArgument
from dpal.privacy import checks
from dpal.randomness import Randomness

Positions = NDArray[np.int64]


def poisson_draw(
    groups: Sequence[NDArray[np.integer]], sampling_probabilities: Sequence[float], *, randomness: Randomness
) -> Positions:
    """The records of one step. The draw may be empty, and is never cut short or filled up: both would change ε."""
    if len(groups) != len(sampling_probabilities):
        raise InvalidArgument("the number of groups", len(groups), f"{len(sampling_probabilities)}, one a probability")
    parts = [
        group[randomness.coins(Fraction(checks.probability("sampling_probability", probability)), len(group))]
        for group, probability in zip(groups, sampling_probabilities, strict=True)
    ]
    return np.concatenate(parts).astype(np.int64) if parts else np.empty(0, dtype=np.int64)


def physical_batches(draw: Positions, most: int) -> Iterator[Positions]:
    """The draw in parts of bounded size. Together they are the whole draw; an empty draw has no parts."""
    if most < 1:
        raise InvalidArgument("max_physical_batch_size", most, "at least 1")
    for start in range(0, len(draw), most):
        yield draw[start : start + most]
