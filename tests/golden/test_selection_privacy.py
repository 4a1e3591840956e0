"""Exact privacy of every selection mechanism on small pools: with a record and with a blank in its place.

The mechanisms' own code runs along every path of its random decisions. Noise has infinitely many values, so for noisy
mechanisms three records are enumerated within a reach, and up to six are summed by a formula that must agree.
"""

import math
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from enumeration import outcomes
from selections import threshold

from dpal.errors import InvalidArgument
from dpal.privacy.campaign_curve import campaign_curve
from dpal.privacy.campaign_history import CampaignHistory, Released, pure_epsilon
from dpal.privacy.campaign_profile import CampaignProfile
from dpal.privacy.mechanisms import BernoulliSelection, DiscreteGaussian, DiscreteLaplace, Exponential
from dpal.selection import (
    ExponentialSelection,
    GaussianSelection,
    LaplaceSelection,
    RandomSelection,
    SampledGaussianSelection,
    Selection,
    ThresholdSelection,
)

ORDERS = (1.25, 2.0, 4.0, 16.0, 64.0)
BOUNDARIES = (0.0, 0.1, 0.3, 0.7, 1.5)
HIGHEST = 0.8


class FourSteps(ThresholdSelection):
    """The same code on a grid that can be enumerated."""

    resolution = property(lambda self: 4)


def distribution(selection: Selection, steps_up: tuple[int, ...], reach: int = 0):
    """Probabilities of everything released, for scores given in whole steps."""
    scores = np.array(steps_up) * HIGHEST / selection.resolution

    def run(randomness):
        chosen = selection.choose(scores, highest=HIGHEST, randomness=randomness)
        return frozenset(chosen.to_label.tolist()), frozenset(chosen.retired.tolist()), chosen.threshold

    return outcomes(run, noise_reach=reach)


def violation(released: Released, first, second, slack: float = 1e-9) -> float:
    """How far two output distributions are outside the stated privacy, in either direction; at most 0 is inside."""
    worst = -math.inf
    campaign = CampaignHistory(training=((), ()), selections=(released,))
    curve = campaign_curve(campaign, ORDERS, follow_branches=False)
    profile = CampaignProfile.of(campaign, follow_branches=False)
    keys = first.keys() | second.keys()
    for p, q in ((first, second), (second, first)):
        pairs = [(p.get(key, 0.0), q.get(key, 0.0)) for key in keys]
        for order, bound in zip(ORDERS, curve, strict=True):
            moment = math.fsum(a * (a / b) ** (order - 1) for a, b in pairs if a > 0)
            worst = max(worst, math.log(moment) / (order - 1) - bound)
        for at in BOUNDARIES:
            stick = math.fsum(max(0.0, a - math.exp(at) * b) for a, b in pairs)
            worst = max(worst, stick - profile.delta(at))
        try:
            pure = math.fsum(pure_epsilon(kind) for kind in released.mechanisms())
            worst = max(worst, max(math.log(a / b) for a, b in pairs if a > 0) - pure)
        except InvalidArgument:
            pass  # not a pure mechanism: its curves have been checked
    return worst - slack


POOLS = [(0, 2, 3, 4), (4, 4, 4, 4), (1, 1, 0, 3), (0, 0, 0, 0), (2, 3, 1, 4, 0, 3)]


def neighbours(pool: tuple[int, ...], top: int):
    """A pool with some content of its first record, and with a blank there, which scores 0."""
    for content in range(1, top + 1):
        yield (content, *pool[1:]), (0, *pool[1:])


@pytest.mark.parametrize("pool", POOLS)
def test_threshold_sampling(pool: tuple[int, ...]) -> None:
    mechanism = threshold(2, high=0.6, low=0.25, epsilon=0.5, above=0.45, kind=FourSteps)
    for with_record, with_blank in neighbours(pool, 4):
        first, second = distribution(mechanism, with_record), distribution(mechanism, with_blank)
        assert violation(mechanism.released, first, second) <= 0
        # A cut of 0 would have blanks above it, which branch accounting excludes.
        assert all(cut > 0 for _, _, cut in first)
    # The bound is nearly met where the threshold settles below the record, so halving it must be noticed.
    halved = replace(mechanism.released, choice=BernoulliSelection(probability_high=0.45, probability_low=0.3))
    if pool == POOLS[2]:
        first, second = distribution(mechanism, (4, *pool[1:])), distribution(mechanism, (0, *pool[1:]))
        assert violation(halved, first, second) > 0.01


def test_a_threshold_with_half_the_sensitivity_is_noticed() -> None:
    # The private cut by itself: weights for a sensitivity of 1/2 spend twice the stated ε.
    choice = BernoulliSelection(probability_high=0.5, probability_low=0.5 - 1e-9)
    stated = Exponential(epsilon=1.0)
    wrong = threshold(4, high=0.5, low=0.5 - 1e-9, epsilon=2.0, above=0.5, kind=FourSteps)
    worst = {}
    for mechanism in (wrong, replace(wrong, threshold_epsilon=1.0)):
        pairs = [pair for pool in product(range(5), repeat=2) for pair in neighbours((0, *pool), 4)]
        worst[mechanism.threshold_epsilon] = max(
            violation(Released(choice=choice, threshold=stated), distribution(mechanism, a), distribution(mechanism, b))
            for a, b in pairs
        )
    assert worst[1.0] <= 0 < 0.01 < worst[2.0]


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("query_size", [1, 3])
def test_one_shot_exponential(pool: tuple[int, ...], query_size: int) -> None:
    class Coarse(ExponentialSelection):
        resolution = property(lambda self: 4)

    for weight_epsilon in (0.5, 2.0):
        mechanism = Coarse(query_size=query_size, unlabelled=len(pool), weight_epsilon=weight_epsilon)
        # Half the sensitivity: the weights move twice as far as the stated ε allows.
        wrong = replace(mechanism, weight_epsilon=2 * weight_epsilon)
        found = []
        for with_record, with_blank in neighbours(pool, 4):
            first, second = distribution(mechanism, with_record), distribution(mechanism, with_blank)
            assert violation(mechanism.released, first, second) <= 0
            found.append(
                violation(mechanism.released, distribution(wrong, with_record), distribution(wrong, with_blank))
            )
        if query_size == 1:
            assert max(found) > 0.01


def test_the_one_shot_bound_is_nearly_met() -> None:
    # One pick among records of the highest score: the more of them, the nearer the ratio comes to the bound.
    mechanism = ExponentialSelection(query_size=1, unlabelled=6, weight_epsilon=3.0)
    others = (65_535,) * 5
    first, second = distribution(mechanism, (65_535, *others)), distribution(mechanism, (0, *others))
    worst = max(abs(math.log(first[key] / second[key])) for key in first)
    stated = pure_epsilon(mechanism.released.choice)
    assert 0.93 * stated < worst <= stated


def noise_pmf(noise: DiscreteLaplace | DiscreteGaussian, reach: int):
    x = np.arange(-reach, reach + 1)
    if isinstance(noise, DiscreteLaplace):
        weights = np.exp(-np.abs(x) * noise.epsilon / noise.grid_steps)
    else:
        weights = np.exp(-(x.astype(float) ** 2) / (2 * noise.variance))
    return weights / weights.sum()


def summed_top(steps_up: tuple[int, ...], query_size: int, pmf, reach: int, *, participation: float = 1.0):
    """P(each set is the noisy top), by summing over the value of the last one taken and over ties."""
    count = len(steps_up)
    values = np.arange(-reach, reach + max(steps_up) + 1)
    at, above = np.zeros((count, len(values))), np.zeros((count, len(values)))
    for record, score in enumerate(steps_up):
        at[record, score : score + len(pmf)] = pmf
        above[record] = at[record][::-1].cumsum()[::-1] - at[record]
    below = 1 - at - above
    totals: dict[frozenset[int], float] = {}
    for takes_part in product((True, False), repeat=count) if participation < 1 else [(True,) * count]:
        present = [record for record in range(count) if takes_part[record]]
        chance = participation ** len(present) * (1 - participation) ** (count - len(present))
        wanted = min(query_size, len(present))
        if wanted == 0:
            totals[frozenset()] = totals.get(frozenset(), 0.0) + chance
            continue
        for places in product((0, 1, 2), repeat=len(present)):
            higher = [record for record, place in zip(present, places, strict=True) if place == 2]
            ties = [record for record, place in zip(present, places, strict=True) if place == 1]
            if not len(higher) < wanted <= len(higher) + len(ties):
                continue
            product_of_chances = np.ones(len(values))
            for record, place in zip(present, places, strict=True):
                product_of_chances *= (below, at, above)[place][record]
            picks = list(combinations(ties, wanted - len(higher)))
            for pick in picks:
                key = frozenset((*higher, *pick))
                totals[key] = totals.get(key, 0.0) + chance * float(product_of_chances.sum()) / len(picks)
    assert math.fsum(totals.values()) == pytest.approx(1)
    return totals


def noisy(noise: DiscreteLaplace | DiscreteGaussian, query_size: int = 1) -> Selection:
    """The selection that adds this noise."""
    sizes = {"query_size": query_size, "unlabelled": 6, "grid_steps": noise.grid_steps}
    if isinstance(noise, DiscreteLaplace):
        return LaplaceSelection(**sizes, epsilon=noise.epsilon)
    if noise.participation == 1:
        return GaussianSelection(**sizes, noise_multiplier=noise.noise_multiplier)
    return SampledGaussianSelection(**sizes, noise_multiplier=noise.noise_multiplier, participation=noise.participation)


NOISES = [
    DiscreteLaplace(epsilon=1.0, grid_steps=1),
    DiscreteLaplace(epsilon=1.5, grid_steps=4),
    DiscreteGaussian(noise_multiplier=1.2, grid_steps=4),
    DiscreteGaussian(noise_multiplier=1.2, grid_steps=4, participation=0.7),
]


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_the_sums_are_what_the_code_does(noise: DiscreteLaplace | DiscreteGaussian) -> None:
    for steps_up, query_size in (((1, 0, 1), 1), ((1, 1, 0), 2)):
        mechanism = noisy(noise, query_size)
        reach = 5
        part = noise.participation if isinstance(noise, DiscreteGaussian) else 1.0
        exact = distribution(mechanism, steps_up, reach)
        summed = summed_top(steps_up, query_size, noise_pmf(noise, reach), reach, participation=part)
        assert {key[0]: value for key, value in exact.items()} == pytest.approx(summed)


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_noisy_selections_of_up_to_six_records(noise: DiscreteLaplace | DiscreteGaussian) -> None:
    top_step, reach = noise.grid_steps, 160
    part = noise.participation if isinstance(noise, DiscreteGaussian) else 1.0
    released = noisy(noise).released
    assert released.choice == noise
    if isinstance(noise, DiscreteLaplace):
        # Sensitivity halved: the noise is for scores that move half as far.
        wrong = replace(noise, epsilon=2 * noise.epsilon)
    else:
        wrong = replace(noise, noise_multiplier=noise.noise_multiplier / 2)
    found = []
    for pool, query_size in product(POOLS if part == 1 else POOLS[:3], (1, 2)):
        capped = tuple(min(score, top_step) for score in pool)
        pair = ((top_step, *capped[1:]), (0, *capped[1:]))
        right, planted = (
            [summed_top(scores, query_size, noise_pmf(kind, reach), reach, participation=part) for scores in pair]
            for kind in (noise, wrong)
        )
        assert violation(released, *right) <= 0
        found.append(violation(released, *planted))
    assert max(found) > 0.01


def test_random_selection_tells_nothing() -> None:
    mechanism = RandomSelection(query_size=2, unlabelled=3)
    assert distribution(mechanism, (65_535, 3, 9)) == distribution(mechanism, (0, 3, 9))
