"""The exact hockey stick δ(ε) of a whole campaign, following the branches or additive over selections."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpal.privacy import checks
from dpal.privacy.campaign_curve import branch_options
from dpal.privacy.campaign_history import CampaignHistory, Released, pure_epsilon
from dpal.privacy.losses import Direction, loss_cells, loss_range
from dpal.privacy.mechanisms import BernoulliSelection, Gaussian, Mechanism
from dpal.privacy.pld import DEFAULT_INTERVAL, privacy_profile
from dpal.privacy.search import bracket, safe_crossing

Array = NDArray[np.float64]
Profile: TypeAlias = Callable[[Array], Array]

# Beyond this many distinct ε one selection's curve is kept on a grid; chords above it are upper bounds.
_MOST_POINTS = 1024
_MOST_SORTED = 32 * _MOST_POINTS
# A selection's own losses are rounded, upwards, to this many values where they are continuous.
_SELECTION_LOSSES = 128
# The losses of a private mean, likewise.
_MEAN_LOSSES = 512
_LARGEST_EPSILON = 1e3
_BLOCK = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignProfile:
    """δ(ε) of a campaign: the larger of both directions, and over every life a record may have.

    `training` holds, for each direction, the training δ(ε) of every group, oldest first.
    """

    training: Mapping[Direction, tuple[Profile, ...]]
    selections: tuple[Released, ...]
    follow_branches: bool = True
    mean: Gaussian | None = None

    @classmethod
    def of(
        cls, campaign: CampaignHistory, interval: float = DEFAULT_INTERVAL, *, follow_branches: bool = True
    ) -> "CampaignProfile":
        # The initial group is public, so its mean and its training are one history.
        before = () if campaign.mean is None else ((campaign.mean, 1),)
        histories = ((*campaign.training[0], *before), *campaign.training[1:])
        training = {
            direction: tuple(privacy_profile(history, direction, interval).delta for history in histories)
            for direction in Direction
        }
        return cls(
            training=training, selections=campaign.selections, follow_branches=follow_branches, mean=campaign.mean
        )

    def delta(self, epsilon: float) -> float:
        """δ at this ε, which may be negative."""
        epsilon = checks.number("epsilon", epsilon, "a number")
        return max(self._delta(epsilon, direction) for direction in self.training)

    def epsilon(self, delta: float) -> float:
        """The smallest ε ≥ 0 with δ(ε) ≤ delta, from above; infinity if there is none up to 1,000."""
        delta = checks.open_probability("delta", delta)
        found = 0.0
        for direction in self.training:
            # Where one direction's ε is enough for the other, a single look at that one says so.
            if not (found > 0 and self._delta(found, direction) <= delta):
                found = max(found, self._epsilon(delta, direction))
        return found

    def _epsilon(self, delta: float, direction: Direction) -> float:
        def trained(epsilon: float) -> float:
            return max(float(profile(np.array([epsilon]))[0]) for profile in self.training[direction])

        @cache
        def whole(epsilon: float) -> float:
            return self._delta(epsilon, direction)

        # What the worst group has trained is quickly known, lies a little below what the campaign costs, and falls as
        # steeply: a step along it leads to where the search may start. What is returned was evaluated itself.
        nearby = _crossing(trained, delta, start=1.0, stride=1.0, tolerance=0.01)
        if not math.isfinite(nearby):
            return math.inf
        stride = 0.002 * max(nearby, 0.5)
        here, further, above = trained(nearby), trained(nearby + 0.01), whole(nearby)
        if above > delta and 0 < further < here:
            stride = max(stride, 1.05 * 0.01 * math.log(above / delta) / math.log(here / further))
        return _crossing(whole, delta, start=nearby, stride=stride, tolerance=1e-10)

    def _delta(self, epsilon: float, direction: Direction) -> float:
        asked = np.array([epsilon])
        first_group = float(self.training[direction][0](asked)[0])
        return max(0.0, first_group, float(self._after_mean(asked, direction)[0]))

    def _after_mean(self, asked: Array, direction: Direction) -> Array:
        """δ at the asked ε for records outside the initial group, the private mean included.

        δ = E over the mean's loss of the worst that may follow it: which selection takes a record may depend on the
        mean, so the maximum over lives is inside (docs/maths/mean.md).
        """
        if self.mean is None:
            return self._after(0, asked, direction)
        low, high = loss_range(self.mean)
        losses = loss_cells(self.mean, (high - low) / _MEAN_LOSSES).distribution(direction)
        after = asked[:, None] - losses.losses[None, :]
        following = self._tabulated(0, after.ravel(), direction)
        return losses.infinite + following(after.ravel()).reshape(after.shape) @ losses.probabilities

    def _after(self, level: int, asked: Array, direction: Direction) -> Array:
        """δ at the asked ε for a record that the selections before this one have passed over."""
        if level == len(self.selections):
            return np.maximum(0.0, -np.expm1(np.minimum(asked, 1.0)))
        selection = self.selections[level]
        taken = self.training[direction][level + 1]
        choice = selection.choice
        if choice is None and selection.threshold is not None:
            # A cut is released and who is above it is not: whether a record joins may depend on the cut in any way.
            return self._additive(selection.threshold, level, asked, taken, direction)
        threshold = 0.0 if selection.threshold is None else pure_epsilon(selection.threshold)
        left = asked - threshold
        if choice is None:
            return np.maximum(taken(left), self._after(level + 1, left, direction))
        if self.follow_branches and isinstance(choice, BernoulliSelection):
            return self._branches(choice, level, left, taken, direction)
        return self._additive(choice, level, left, taken, direction)

    def _branches(
        self, choice: BernoulliSelection, level: int, left: Array, taken: Profile, direction: Direction
    ) -> Array:
        options = branch_options(choice, direction)
        after_taken = [left - (math.log(a) - math.log(b)) for a, b in options]
        after_passed = [left - (math.log1p(-a) - math.log1p(-b)) for a, b in options]
        passed = self._tabulated(level + 1, np.concatenate(after_passed), direction)
        totals = [
            a * taken(if_taken) + (1 - a) * passed(if_passed)
            for (a, _), if_taken, if_passed in zip(options, after_taken, after_passed, strict=True)
        ]
        return np.max(totals, axis=0)

    def _additive(self, choice: Mechanism, level: int, left: Array, taken: Profile, direction: Direction) -> Array:
        # δ = E over the choice's loss of the worse of what may follow (docs/maths/branches.md, docs/maths/cut.md).
        low, high = loss_range(choice)
        interval = max((high - low) / _SELECTION_LOSSES, 1e-6)
        losses = loss_cells(choice, interval).distribution(direction)
        after = left[:, None] - losses.losses[None, :]
        nodes, even = _nodes(after.ravel())
        worse = _chords(nodes, np.maximum(taken(nodes), self._after(level + 1, nodes, direction)), even=even)
        return losses.infinite + worse(after.ravel()).reshape(after.shape) @ losses.probabilities

    def _tabulated(self, level: int, asked: Array, direction: Direction) -> Profile:
        nodes, even = _nodes(asked)
        return _chords(nodes, self._after(level, nodes, direction), even=even)


def _nodes(asked: Array) -> tuple[Array, bool]:
    """The asked ε themselves, once each, or an even grid from end to end where they are too many; and whether it is."""
    # Sorting more than this to see how many differ would take longer than all the rest.
    if len(asked) <= _MOST_SORTED and len(distinct := np.unique(asked)) <= _MOST_POINTS:
        return distinct, False
    return np.linspace(asked.min(), asked.max(), _MOST_POINTS), True


def _chords(nodes: Array, values: Array, *, even: bool = False) -> Profile:
    """The curve through the nodes, straight in exp(ε): never below a hockey stick, which is convex there."""
    if len(nodes) == 1:
        return lambda asked: np.full(asked.shape, values[0])
    starts, ends, rises = nodes[:-1], nodes[1:], np.diff(values)
    widths = -np.expm1(starts - ends)

    def block(asked: Array) -> Array:
        left = _left_ends_on_even(nodes, asked) if even else np.searchsorted(nodes, asked, side="right") - 1
        left = np.minimum(np.maximum(left, 0), len(nodes) - 2)
        # (e^x − e^start) / (e^end − e^start), in terms that cannot overflow; where they underflow the answer is the
        # left end's, which is above.
        share = np.exp(asked - ends.take(left)) * -np.expm1(starts.take(left) - asked) / widths.take(left)
        return values.take(left) + np.minimum(np.maximum(share, 0.0), 1.0) * rises.take(left)

    def interpolated(asked: Array) -> Array:
        # In blocks that stay in a processor's cache: twice as fast.
        return np.concatenate([block(asked[start : start + _BLOCK]) for start in range(0, len(asked), _BLOCK)])

    return interpolated


def _left_ends_on_even(nodes: Array, asked: Array) -> NDArray[np.intp]:
    """The last node at or below each asked ε: much faster than a search, and off by at most one before it is mended."""
    left = ((asked - nodes[0]) * ((len(nodes) - 1) / (nodes[-1] - nodes[0]))).astype(np.intp)
    left = np.minimum(np.maximum(left, 0), len(nodes) - 2)
    left -= nodes.take(left) > asked
    left += nodes.take(left + 1) <= asked
    return left


def _crossing(
    delta_at: Callable[[float], float], delta: float, *, start: float, stride: float, tolerance: float
) -> float:
    """The smallest ε ≥ 0 with δ(ε) ≤ delta, from above; infinity if there is none up to 1,000."""
    log_target = math.log(delta)

    @cache
    def gap(epsilon: float) -> float:
        value = delta_at(epsilon)
        return math.log(value) - log_target if value > 0 else -math.inf

    ends = bracket(gap, start=start, stride=stride, safest=_LARGEST_EPSILON, boldest=0.0)
    return math.inf if ends is None else safe_crossing(gap, safe=ends[0], unsafe=ends[1], gap_tolerance=tolerance)
