"""How good a selection was, against the true scores. Only for simulations: these numbers are not private."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpal.errors import InvalidArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """The paper's three measures and the mean score of what was selected, next to the pool's mean."""

    # The part of the true top that was selected, of as many as were wanted.
    accuracy: float
    # Selected and in the true top, over selected or in the true top.
    intersection_over_union: float
    # Between the selected scores and the true top's, both in falling order.
    mean_squared_error: float
    mean_score: float
    pool_mean_score: float


def quality(
    scores: NDArray[np.floating], selected: NDArray[np.integer], query_size: int, *, nothing_is_private: bool
) -> Quality:
    """The quality of selected positions. The caller says that nothing is private: these numbers reveal scores."""
    if nothing_is_private is not True:
        allowed = "True: the quality of a selection is computed from raw scores, so it is for simulations only"
        raise InvalidArgument("nothing_is_private", nothing_is_private, allowed)
    if not 0 < query_size <= len(scores):
        raise InvalidArgument("query_size", query_size, f"from 1 to the {len(scores):,} scores")
    if len(selected) == 0:
        raise InvalidArgument("the number of selected records", 0, "at least 1")
    falling = np.argsort(-scores, kind="stable")
    best = falling[:query_size]
    common = len(np.intersect1d(best, selected))
    chosen = np.sort(scores[selected])[::-1]
    if len(chosen) != query_size:
        # Threshold sampling may select a few less: compare the two quantile functions at the same points.
        chosen = np.quantile(chosen, 1 - (np.arange(query_size) + 0.5) / query_size)
    return Quality(
        accuracy=common / query_size,
        intersection_over_union=common / (query_size + len(selected) - common),
        mean_squared_error=float(np.mean((scores[best] - chosen) ** 2)),
        mean_score=float(scores[selected].mean()),
        pool_mean_score=float(np.mean(scores)),
    )
