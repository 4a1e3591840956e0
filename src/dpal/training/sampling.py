"""Who takes part in a step: each record, or each unit, is drawn on its own, with the probability of its group."""

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
_CPU_BATCHES = 8


def poisson_draw(
    groups: Sequence[NDArray[np.integer]], sampling_probabilities: Sequence[float], *, randomness: Randomness
) -> Positions:
    """The records or units of one step. It may be empty and is never truncated or padded, which would change ε."""
    if len(groups) != len(sampling_probabilities):
        raise InvalidArgument(
            "the number of groups", len(groups), f"{len(sampling_probabilities)}, one per probability"
        )
    drawn = [
        group[randomness.coins(Fraction(checks.probability("sampling_probability", probability)), len(group))]
        for group, probability in zip(groups, sampling_probabilities, strict=True)
    ]
    return np.concatenate(drawn).astype(np.int64) if drawn else np.empty(0, dtype=np.int64)


# Stands for an empty seat, or for a record or unit that teaches nothing (it has no label, or was withdrawn).
BLANK = -1


def seated(draw: Positions, rows: int, order: np.random.Generator) -> list[Positions]:
    """The draw in physical batches of exactly so many rows, in random order; empty seats are `BLANK`.

    Arithmetic may depend on a record's row and on the number of rows. Here neither depends on who else was drawn.
    Together the batches hold the whole draw; an empty draw has none.
    """
    batches = -(-len(draw) // rows)
    seats = np.full(batches * rows, BLANK, dtype=np.int64)
    seats[order.permutation(len(seats))[: len(draw)]] = draw
    return list(seats.reshape(batches, rows))


def physical_rows(
    expected_batch_size: float, most: int, *, one_at_a_time: bool, rows_per_unit: int = 1, processes: int = 1
) -> int:
    """The number of records (or whole units) of a physical batch, from public numbers alone.

    Batches are padded to this number. `most` counts records; one unit fits even if it has more. On a CPU it is an
    eighth of the expected draw, so that little is wasted on padding, and up to eight processes have the same batches
    as one. A GPU is faster with a whole draw at once, with room for three standard deviations more; several processes
    take equal parts of it.
    """
    if most < 1:
        raise InvalidArgument("max_physical_batch_size", most, "at least 1")
    whole = math.ceil(expected_batch_size + 3 * math.sqrt(expected_batch_size))
    wanted = whole / processes if one_at_a_time else expected_batch_size / max(_CPU_BATCHES, processes)
    return min(max(1, most // rows_per_unit), max(_FEWEST_ROWS, math.ceil(wanted)))


def most_drawn(expected_batch_size: float, records: int) -> int:
    """A public number of records (or units) that one step does not exceed, for margins of rounding.

    How many are labelled may be private, so it cannot be that. All of them are an exact bound; in a large pool, four
    times the planned draw is one that a draw exceeds with a probability below 1e-300 if groups are as planned.
    """
    return min(records, math.ceil(4 * expected_batch_size) + 4096)
