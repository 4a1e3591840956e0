"""Which records take part in a step: each by a coin of its own group's probability, and nobody else decides."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpal.errors import InvalidArgument
from dpal.privacy import checks
from dpal.randomness import Randomness

Positions = NDArray[np.int64]
_FEWEST_ROWS = 8


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


# What holds an empty seat, or the seat of a record that teaches nothing (it has no label, or was withdrawn).
BLANK = -1


def seated(draw: Positions, rows: int, order: np.random.Generator) -> list[Positions]:
    """The draw in physical batches of exactly so many rows, at random places; `BLANK` where nobody sits.

    Arithmetic may depend on a record's row, and on how many rows there are. Here neither depends on who else was drawn.
    Together the batches are the whole draw; an empty draw has none.
    """
    batches = -(-len(draw) // rows)
    seats = np.full(batches * rows, BLANK, dtype=np.int64)
    seats[order.permutation(len(seats))[: len(draw)]] = draw
    return list(seats.reshape(batches, rows))


def physical_rows(expected_batch_size: float, most: int, *, one_at_a_time: bool) -> int:
    """The rows of a physical batch, from public numbers alone.

    Batches are filled up to it, so on a CPU it is an eighth of the expected draw: few rows are wasted. A GPU is better
    used by a whole draw at once, with room for three standard deviations more.
    """
    if most < 1:
        raise InvalidArgument("max_physical_batch_size", most, "at least 1")
    whole = math.ceil(expected_batch_size + 3 * math.sqrt(expected_batch_size))
    return min(most, max(_FEWEST_ROWS, whole if one_at_a_time else math.ceil(expected_batch_size / 8)))
