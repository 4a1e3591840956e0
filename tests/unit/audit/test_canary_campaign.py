"""Campaigns of canaries: who joins when, and what the adversary makes of a coordinate."""

import math

import numpy as np
import pytest
from audited_plans import plan, target
from scipy.stats import norm

from dpal.audit.canary_campaign import NOBODY, UNSURE, CanaryPool, carried_out, choice_evidence, log_ratio, trained
from dpal.randomness import SeededRandomness
from dpal.selection.selection import Chosen


def seeded(seed: int = 1) -> SeededRandomness:
    return SeededRandomness(seed=seed, nothing_is_private=True)


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0])
def test_the_likelihood_ratio_of_a_coordinate(rate: float) -> None:
    seen, noise = np.array([-2.0, 0.0, 0.5, 3.0]), 1.3
    there = (1 - rate) * norm.pdf(seen, 0, noise) + rate * norm.pdf(seen, 1, noise)
    assert log_ratio(seen, rate, noise) == pytest.approx(np.log(there / norm.pdf(seen, 0, noise)))


def test_training_shows_a_canary_as_much_as_its_rates_and_noise_say() -> None:
    pool = trained(target(), 4_000, seeded())
    present, absent = pool.split()
    assert 1_800 < len(present) < 2_200
    # For small rates the evidence is nearly normal; its mean difference is the sum of what each step tells.
    told = sum(
        phase.steps * phase.sampling_probabilities[0] ** 2 * math.expm1(1 / phase.noise_multiplier**2)
        for phase in plan().phases
    )
    assert present.mean() - absent.mean() == pytest.approx(told, rel=0.2)


@pytest.mark.parametrize("replayed", [False, True])
def test_the_adversary_knows_who_would_have_joined(replayed: bool) -> None:
    pool = carried_out(target(), 3_000, seeded(), replayed=replayed)
    sure = pool.present & (pool.believed != UNSURE)
    assert (pool.believed[sure] == pool.group[sure]).all()
    # Blanks never join by a cut, and as many of them would have.
    assert (pool.group[~pool.present & (pool.meant_for > 0)] == NOBODY).all()
    joined = pool.meant_for > 0
    assert (pool.believed[joined & pool.present] == 1).mean() == pytest.approx(
        (pool.believed[joined & ~pool.present] == 1).mean(), abs=0.08
    )
    assert (pool.believed == 1).sum() > 500


def test_released_choices_are_seen_as_they_are() -> None:
    pool = carried_out(target(released=True), 3_000, seeded())
    assert (pool.believed == pool.group).all()
    assert ((pool.group > 0) & ~pool.present).any(), "a blank may be chosen too, by its low probability"


def test_evidence_of_a_choice_is_its_log_likelihood_ratio() -> None:
    selection = plan(released=True).selections[0]
    high, low = selection.probability_high, selection.probability_low
    chosen = Chosen(to_label=np.array([0]), retired=np.array([]), threshold=0.5)
    taken = np.array([True, False, True])
    evidence = choice_evidence(selection, chosen, np.array([0.9, 0.9, 0.1]), taken)
    assert evidence == pytest.approx([math.log(high / low), math.log((1 - high) / (1 - low)), 0.0])


def test_a_fair_coin_decides_who_is_there() -> None:
    pool = CanaryPool.of(10_000, [1, 3], target(), seeded())
    assert 4_700 < pool.present.sum() < 5_300
    assert np.bincount(pool.meant_for).tolist() == [2_500, 7_500]
