"""Whole campaigns with cuts that are small enough to enumerate: every transcript with its exact probability.

Training is a release in whole numbers modulo `len(noise)`: the sum of what the drawn members contribute, plus noise. A
shift of the sum by others only renames the outcomes, so a member's exact privacy profile is that of one shift.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import product
from random import Random
from typing import TypeAlias

import numpy as np
from enumeration import outcomes

from dpal.privacy.campaign_profile import CampaignProfile
from dpal.privacy.losses import Direction
from dpal.randomness import Randomness
from dpal.selection import CutSelection

History: TypeAlias = tuple[Hashable, ...]
Distribution: TypeAlias = dict[Hashable, float]
Choice: TypeAlias = tuple[frozenset[int], float | None]
HIGHEST = 1.0
# What stands in the record's place: the record itself, a blank (zero-out), or nothing at all (add/remove).
RECORD, BLANK, ABSENT = "record", "blank", "absent"
EPSILONS = tuple(np.linspace(-2, 5, 29).tolist())


def cut(epsilon: float, wanted: int, *, grid_steps: int, coin_levels: int = 1, query_size: int = 6) -> CutSelection:
    return CutSelection(
        query_size=query_size,
        unlabelled=max(query_size, 6),
        cut_epsilon=epsilon,
        wanted=wanted,
        grid_steps=grid_steps,
        coin_levels=coin_levels,
    )


def geometric(ratio: float, residues: int) -> tuple[float, ...]:
    """Two-sided geometric noise around a circle."""
    weights = [ratio ** min(value, residues - value) for value in range(residues)]
    return tuple(weight / math.fsum(weights) for weight in weights)


def fixed_scores(*rounds: tuple[int, ...], steps: int) -> Callable[[int, History], float]:
    """Scores in whole steps, for each record in each round."""
    return lambda record, history: rounds[len(history) // 2][record] / steps


def drawn_scores(seed: object, steps: int) -> Callable[[int, History], float]:
    """Scores that depend on the record and on everything released so far, in an arbitrary way."""

    def score(record: int, history: History) -> float:
        return Random(f"{seed} {record} {history}").randint(0, steps) / steps  # noqa: S311

    return score


def honest(selection: CutSelection, scores: list[float], randomness: Randomness) -> Choice:
    """What dpal does: its own code. Positions count within the scores; where nobody is left, a blank stands there."""
    chosen = selection.choose(np.array(scores or [0.0]), highest=HIGHEST, randomness=randomness)
    assert len(chosen.retired) == 0 and chosen.threshold is not None
    return frozenset(chosen.to_label.tolist()), chosen.threshold


@dataclass(frozen=True, kw_only=True)
class ToyCampaign:
    """Phase, cut, phase, cut, phase. The record in question is number 0, or a person has several."""

    selections: tuple[CutSelection, ...]
    # The noise of each phase's release, for the residues 0, 1, …
    noises: tuple[tuple[float, ...], ...]
    # Sampling probabilities by phase, for the groups oldest first.
    rates: tuple[tuple[float, ...], ...]
    score: Callable[[int, History], float]
    records: int = 6
    initial: frozenset[int] = frozenset({1})
    contributions: tuple[int, ...] = (1,) * 6
    # The records that are blanked together.
    person: frozenset[int] = frozenset({0})
    # Where bugs are planted.
    choose: Callable[[CutSelection, list[float], Randomness], Choice] = honest
    divisor_follows_group: bool = False
    cache: dict[Hashable, Distribution] = field(default_factory=dict, compare=False, repr=False)

    def transcripts(self, world: str) -> Distribution:
        """The probability of everything that is released: models and cuts."""
        start = self.initial - {0} if world == ABSENT else self.initial
        states: dict[tuple[History, tuple[frozenset[int], ...]], float] = {((), (start,)): 1.0}
        for phase in range(len(self.noises)):
            if phase > 0:
                states = self._selected(states, phase - 1, world)
            states = self._trained(states, phase, world)
        released: Distribution = defaultdict(float)
        for (history, _), probability in states.items():
            released[history] += probability
        assert abs(math.fsum(released.values()) - 1) < 1e-9
        return dict(released)

    def _selected(self, states, number: int, world: str):
        found = defaultdict(float)
        everyone = range(1 if world == ABSENT else 0, self.records)
        for (history, groups), before in states.items():
            left = [record for record in everyone if not any(record in group for group in groups)]
            scores = [0.0 if self._is_blank(record, world) else self.score(record, history) for record in left]
            for (chosen, threshold), probability in self._choices(number, scores).items():
                joined = frozenset(left[place] for place in chosen)
                found[(*history, threshold), (*groups, joined)] += before * probability
        return found

    def _is_blank(self, record: int, world: str) -> bool:
        return record in self.person and world == BLANK

    def _choices(self, number: int, scores: list[float]) -> dict[Choice, float]:
        key = (number, tuple(scores))
        if key not in self.cache:
            selection = self.selections[number]
            self.cache[key] = outcomes(lambda randomness: self.choose(selection, list(key[1]), randomness))
        return self.cache[key]

    def _trained(self, states, phase: int, world: str):
        found = defaultdict(float)
        for (history, groups), before in states.items():
            release = np.array(self.noises[phase])
            for group, rate in zip(groups, self.rates[phase], strict=True):
                for record in group:
                    blank = self._is_blank(record, world)
                    release = shifted(release, 0 if blank else self.contributions[record], rate)
            size = sum(not self._is_blank(record, world) for group in groups for record in group)
            for outcome, probability in enumerate(release.tolist()):
                seen = Fraction(outcome + 1, max(size, 1)) if self.divisor_follows_group else outcome
                found[(*history, seen), groups] += before * probability
        return found

    def certified(self) -> CampaignProfile:
        """What dpal certifies, given the exact profiles of training."""
        directions = {}
        for direction in Direction:
            profiles = []
            for group in range(len(self.noises)):
                phases = range(group, len(self.noises))
                steps = tuple((self.noises[phase], self.rates[phase][group]) for phase in phases)
                profiles.append(training_profile(steps, self.contributions[0], direction))
            directions[direction] = tuple(profiles)
        return CampaignProfile(
            training=directions, selections=tuple(selection.released for selection in self.selections)
        )

    def planting(self, **bug) -> "ToyCampaign":
        return replace(self, cache={}, **bug)


def shifted(release: np.ndarray, by: int, rate: float) -> np.ndarray:
    """The release after one more member, who is drawn at this rate, has contributed."""
    return (1 - rate) * release + rate * np.roll(release, by)


@cache
def training_profile(steps, contribution: int, direction: Direction):
    """The exact δ(ε) of releases one after the other, by every outcome of all of them."""
    pairs = [(shifted(np.array(noise), contribution, rate), np.array(noise)) for noise, rate in steps]
    first = np.array([math.prod(values) for values in product(*(pair[0] for pair in pairs))])
    second = np.array([math.prod(values) for values in product(*(pair[1] for pair in pairs))])
    if direction is Direction.BLANK_FIRST:
        first, second = second, first

    def delta(epsilons: np.ndarray) -> np.ndarray:
        asked = np.minimum(np.asarray(epsilons, dtype=np.float64), 700.0)
        return np.maximum(0.0, first - np.exp(asked)[..., None] * second).sum(axis=-1)

    return delta


def hockey_stick(first: Distribution, second: Distribution, epsilon: float) -> float:
    return math.fsum(max(0.0, p - math.exp(epsilon) * second.get(key, 0.0)) for key, p in first.items())


def exact_deltas(campaign: ToyCampaign, without: str, epsilons=EPSILONS) -> list[float]:
    """δ(ε) between the record and a blank or nothing, the worse direction at each ε."""
    first, second = campaign.transcripts(RECORD), campaign.transcripts(without)
    keys = list(first.keys() | second.keys())
    p, q = (np.array([world.get(key, 0.0) for key in keys]) for world in (first, second))
    return [max(np.maximum(0, p - w * q).sum(), np.maximum(0, q - w * p).sum()) for w in np.exp(epsilons)]


def excess(campaign: ToyCampaign, without: str, epsilons=EPSILONS) -> tuple[float, float, float]:
    """Where the exact δ is furthest above the certified one (or least below): (difference, exact, certified)."""
    profile = campaign.certified()
    certified = [profile.delta(at) for at in epsilons]
    exact = exact_deltas(campaign, without, epsilons)
    return max((e - c, e, c) for e, c in zip(exact, certified, strict=True))


def tightness(campaign: ToyCampaign, without: str, epsilons=EPSILONS) -> tuple[float, float]:
    """The largest ratio of exact to certified δ where δ is not negligible and ε above 0, and the ε where it is."""
    profile = campaign.certified()
    exact = exact_deltas(campaign, without, epsilons)
    pairs = [(e / profile.delta(at), at) for e, at in zip(exact, epsilons, strict=True) if at > 0 and e > 1e-6]
    return max(pairs, default=(0.0, 0.0))
