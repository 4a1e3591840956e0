"""The one-shot exponential mechanism: k records without replacement, by weights exp(weight_epsilon · score / clip)."""

import numpy as np

from dpal.errors import InvalidArgument, NoSolution
from dpal.privacy import checks
from dpal.privacy.search import safe_crossing

_CHUNK = 1 << 20


def one_shot_epsilon(weight_epsilon: float, unlabelled: int, query_size: int) -> float:
    """The pure ε of picking query_size of so many records (docs/maths/selection.md). Upper bound.

    Only the record's own weight changes, from 1 (a blank's) to at most exp(weight_epsilon), while all others are at
    least 1. So a pick of it gains at most weight_epsilon, and a pick of another loses at most
    log(1 + (exp(weight_epsilon) − 1) / records left): far less than one full ε for each of the picks.
    """
    weight_epsilon = checks.positive("weight_epsilon", weight_epsilon)
    if not 0 <= query_size <= unlabelled:
        raise InvalidArgument("query_size", query_size, f"from 0 to the {unlabelled:,} unlabelled records")
    passed = 0.0
    for start in range(0, query_size, _CHUNK):
        left = unlabelled - np.arange(start, min(start + _CHUNK, query_size), dtype=np.float64)
        with np.errstate(divide="ignore"):  # log 0 where one record is left
            passed += float(np.logaddexp(np.log((left - 1) / left), weight_epsilon - np.log(left)).sum())
    # The sum of up to millions of terms is exact to about 1e-13.
    return max(weight_epsilon, passed * (1 + 1e-12))


def weight_epsilon_for(epsilon: float, unlabelled: int, query_size: int) -> float:
    """The largest weights that stay within a pure ε, from below."""
    epsilon = checks.positive("epsilon", epsilon)

    def gap(weight_epsilon: float) -> float:
        return one_shot_epsilon(weight_epsilon, unlabelled, query_size) - epsilon

    if gap(epsilon) <= 0:
        return epsilon
    smallest = 1e-9 * epsilon
    if gap(smallest) > 0:
        raise NoSolution(f"No weights keep a selection of {query_size:,} of {unlabelled:,} records within {epsilon:g}.")
    return safe_crossing(gap, safe=smallest, unsafe=epsilon, gap_tolerance=1e-9 * epsilon)
