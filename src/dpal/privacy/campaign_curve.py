"""Rényi curves of a whole campaign: additive over selections, or following the branches."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpal.privacy.campaign_history import CampaignHistory, Released
from dpal.privacy.losses import Direction
from dpal.privacy.mechanisms import BernoulliSelection
from dpal.privacy.renyi import DEFAULT_ORDERS, checked_curve, checked_orders, renyi_curve

Array = NDArray[np.float64]


def campaign_curve(
    campaign: CampaignHistory, orders: Sequence[float] = DEFAULT_ORDERS, *, follow_branches: bool = True
) -> Array:
    """The campaign's Rényi divergence at each order, for every record and both directions.

    The group is an outcome, so the maximum over groups is taken at each order separately
    (docs/maths/branches.md). Without follow_branches, a selection charges everyone its whole curve.
    """
    alpha = checked_orders(orders)
    training = [(alpha - 1) * renyi_curve(history, orders) for history in campaign.training]
    worst = training[0]
    for direction in Direction:
        # What follows a record that every selection has passed over: nothing.
        log_moment = np.zeros(len(alpha))
        for selection, trained in zip(reversed(campaign.selections), reversed(training[1:]), strict=True):
            log_moment = _before(selection, trained, log_moment, alpha, direction, follow_branches)
        worst = np.maximum(worst, log_moment)
    # The mean comes first and its moment is a factor of every life's, whatever follows from it (docs/maths/mean.md).
    before = renyi_curve([] if campaign.mean is None else [(campaign.mean, 1)], orders)
    return checked_curve(worst / (alpha - 1) + before)


def _before(
    selection: Released, taken: Array, passed: Array, alpha: Array, direction: Direction, follow_branches: bool
) -> Array:
    """The log moment before a selection, from the log moments after it took the record or passed it over."""
    if follow_branches and isinstance(selection.choice, BernoulliSelection):
        options = branch_options(selection.choice, direction)
        chosen = np.max([_expected(a, b, taken, passed, alpha) for a, b in options], axis=0)
        charged = [] if selection.threshold is None else [(selection.threshold, 1)]
    else:
        chosen = np.maximum(taken, passed)
        charged = [(mechanism, 1) for mechanism in selection.mechanisms()]
    return chosen + (alpha - 1) * renyi_curve(charged, tuple(alpha))


def branch_options(choice: BernoulliSelection, direction: Direction) -> tuple[tuple[float, float], ...]:
    """Probabilities of being taken for (first, second) neighbour: the blank is always below the threshold."""
    high, low = choice.probability_high, choice.probability_low
    return ((low, low), (high, low) if direction is Direction.RECORD_FIRST else (low, high))


def _expected(a: float, b: float, taken: Array, passed: Array, alpha: Array) -> Array:
    # log[ b·(a/b)^α·e^taken + (1−b)·((1−a)/(1−b))^α·e^passed ]
    return np.logaddexp(
        alpha * np.log(a) + (1 - alpha) * np.log(b) + taken,
        alpha * np.log1p(-a) + (1 - alpha) * np.log1p(-b) + passed,
    )
