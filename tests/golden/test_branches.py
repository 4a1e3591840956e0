"""The branch recursions beside brute force: every life of a record, with Gaussian leaves, integrated."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm

from dpal.privacy.accountants import PldAccountant, RdpAccountant
from dpal.privacy.campaign_accounting import ACCOUNTINGS, campaign_delta, campaign_epsilon
from dpal.privacy.campaign_curve import campaign_curve
from dpal.privacy.campaign_history import CampaignHistory, Released
from dpal.privacy.campaign_profile import CampaignProfile
from dpal.privacy.losses import Direction
from dpal.privacy.mechanisms import BernoulliSelection, Exponential, Gaussian, Laplace, PureDP

# Two neighbours see a leaf as N(1, σ²) and N(0, σ²); noise multipliers of group 0 and of each selection's group.
CAMPAIGNS = [
    ((3.0, 1.2), ((0.4, 0.1),)),
    ((1.0, 0.9), ((0.05, 0.02),)),
    ((2.0, 1.5, 0.8), ((0.3, 0.15), (0.2, 0.03))),
    ((4.0, 2.0, 1.1, 0.7), ((0.5, 0.3), (0.2, 0.05), (0.1, 0.01))),
    ((4.0, 1.0, 1.0, 1.0), ((0.9, 0.8), (0.02, 0.3), (0.6, 0.1))),
]
EPSILONS = (-0.5, 0.0, 0.3, 1.0, 2.5, 4.0)


def selections(choices, threshold=None) -> tuple[Released, ...]:
    return tuple(
        Released(choice=BernoulliSelection(probability_high=high, probability_low=low), threshold=threshold)
        for high, low in choices
    )


def grouped(noises, choices, threshold=None) -> CampaignHistory:
    training = tuple(((Gaussian(noise_multiplier=noise), 1),) for noise in noises)
    return CampaignHistory(training=training, selections=selections(choices, threshold))


def gaussian_profile(noise: float):
    """The exact δ(ε) of a Gaussian mechanism, for any real ε (arXiv:1805.06530 Thm. 8)."""
    shift = 1 / noise
    return lambda epsilon: ndtr(shift / 2 - epsilon / shift) - np.exp(epsilon + log_ndtr(-shift / 2 - epsilon / shift))


def lives(noises, choices, direction: Direction):
    """For every sequence of scores: the outcomes (probability under first, under second, leaf noise or None)."""
    yield [(1.0, 1.0, noises[0])]
    for highs in product((False, True), repeat=len(choices)):
        outcomes, first_left, second_left = [], 1.0, 1.0
        for is_high, (high, low), noise in zip(highs, choices, noises[1:], strict=True):
            record = high if is_high else low
            a, b = (record, low) if direction is Direction.RECORD_FIRST else (low, record)
            outcomes.append((first_left * a, second_left * b, noise))
            first_left, second_left = first_left * (1 - a), second_left * (1 - b)
        yield [*outcomes, (first_left, second_left, None)]


def leaf_integral(p: float, q: float, noise: float | None, epsilon: float) -> float:
    if noise is None:
        return max(0.0, p - math.exp(epsilon) * q)

    def integrand(z: float) -> float:
        return max(0.0, p * norm.pdf(z, 1, noise) - math.exp(epsilon) * q * norm.pdf(z, 0, noise))

    edge = noise**2 * (epsilon + math.log(q / p)) + 0.5
    top = max(edge, 1.0) + 12 * noise
    return quad(integrand, edge, top, epsabs=1e-12, limit=200)[0] if edge < top else 0.0


def brute_force_delta(noises, choices, epsilon: float) -> float:
    return max(
        sum(leaf_integral(p, q, noise, epsilon) for p, q, noise in outcomes)
        for direction in Direction
        for outcomes in lives(noises, choices, direction)
    )


@pytest.mark.parametrize(("noises", "choices"), CAMPAIGNS)
def test_the_exact_form_equals_brute_force(noises, choices) -> None:
    leaves = {direction: tuple(gaussian_profile(noise) for noise in noises) for direction in Direction}
    exact = CampaignProfile(training=leaves, selections=selections(choices))
    for epsilon in EPSILONS:
        assert exact.delta(epsilon) == pytest.approx(brute_force_delta(noises, choices, epsilon), abs=1e-6, rel=1e-6)


@pytest.mark.parametrize(("noises", "choices"), CAMPAIGNS)
def test_with_loss_distributions_it_is_never_below_and_close(noises, choices) -> None:
    profile = CampaignProfile.of(grouped(noises, choices))
    for epsilon in EPSILONS:
        truth = brute_force_delta(noises, choices, epsilon)
        assert truth - 1e-10 <= profile.delta(epsilon) <= truth + 1e-6


@pytest.mark.parametrize(("noises", "choices"), CAMPAIGNS)
def test_the_renyi_form_is_never_below(noises, choices) -> None:
    campaign = grouped(noises, choices)
    for epsilon in (epsilon for epsilon in EPSILONS if epsilon >= 0):
        bound = campaign_delta(campaign, epsilon=epsilon, accounting="branch", accountant=RdpAccountant())
        assert bound >= brute_force_delta(noises, choices, epsilon)


@pytest.mark.parametrize(("noises", "choices"), CAMPAIGNS)
@pytest.mark.parametrize("order", [1.5, 4.0, 11.0])
def test_the_renyi_recursion_is_the_largest_divergence_of_any_life(noises, choices, order: float) -> None:
    def divergence(outcomes) -> float:
        moments = [
            p**order * q ** (1 - order) * (math.exp((order - 1) * order / (2 * noise**2)) if noise else 1.0)
            for p, q, noise in outcomes
        ]
        return math.log(sum(moments)) / (order - 1)

    truth = max(divergence(outcomes) for direction in Direction for outcomes in lives(noises, choices, direction))
    assert campaign_curve(grouped(noises, choices), (order,))[0] == pytest.approx(truth, rel=1e-9)


def test_forgetting_a_direction_would_be_noticed() -> None:
    # A planted bug: only the direction in which the first neighbour has the record.
    noises, choices = CAMPAIGNS[4]
    one_sided = {Direction.RECORD_FIRST: tuple(gaussian_profile(noise) for noise in noises)}
    wrong = CampaignProfile(training=one_sided, selections=selections(choices))
    assert any(wrong.delta(epsilon) < brute_force_delta(noises, choices, epsilon) - 1e-6 for epsilon in EPSILONS)


def test_a_released_threshold_is_covered() -> None:
    # Randomised response in place of the threshold: the worst that ε_q-DP allows, here before one selection.
    size, (noises, choices) = 0.3, CAMPAIGNS[0]
    truth = 1 / (1 + math.exp(-size))
    profile = CampaignProfile.of(grouped(noises, choices, PureDP(epsilon=size)))
    curve = campaign_curve(grouped(noises, choices, PureDP(epsilon=size)), (3.0,))[0]
    plain = campaign_curve(grouped(noises, choices), (3.0,))[0]
    assert curve > plain
    for epsilon in EPSILONS:
        worst = max(
            sum(
                leaf_integral(p * first, q * second, noise, epsilon)
                for first, second in ((truth, 1 - truth), (1 - truth, truth))
                for p, q, noise in outcomes
            )
            for direction in Direction
            for outcomes in list(lives(noises, choices, direction))[1:]
        )
        assert profile.delta(epsilon) >= worst - 1e-9


def test_many_selections_stay_fast_and_above() -> None:
    # Twelve selections are 4,096 sequences of scores: more points than are kept, so chords come in.
    noises = (2.0, *(1.0 + 0.1 * i for i in range(12)))
    choices = tuple((0.1 + 0.01 * i, 0.03 + 0.004 * i) for i in range(12))
    leaves = {direction: tuple(gaussian_profile(noise) for noise in noises) for direction in Direction}
    profile = CampaignProfile(training=leaves, selections=selections(choices))

    def exact(epsilon: float) -> float:
        totals = []
        for direction in Direction:
            for outcomes in lives(noises, choices, direction):
                total = 0.0
                for p, q, noise in outcomes:
                    inner = epsilon + math.log(q / p)
                    total += p * (float(gaussian_profile(noise)(inner)) if noise else max(0.0, -math.expm1(inner)))
                totals.append(total)
        return max(totals)

    for epsilon in (0.5, 3.0):
        truth = exact(epsilon)
        assert truth * (1 - 1e-9) <= profile.delta(epsilon) <= truth * (1 + 1e-3)


def test_additive_selection_is_covered_and_tighter_than_basic() -> None:
    # With Laplace noise on a score: each record's loss, then training with whatever group it lands in.
    training = tuple(((Gaussian(noise_multiplier=noise), 1),) for noise in (1.1, 0.9, 1.0))
    campaign = CampaignHistory(
        training=training, selections=(Released(choice=Laplace(epsilon=0.5)), Released(choice=Laplace(epsilon=0.5)))
    )
    pld = PldAccountant()
    together = pld.epsilon([*training[2], (Laplace(epsilon=0.5), 2)], 1e-5)
    spent = {
        accounting: campaign_epsilon(campaign, delta=1e-5, accounting=accounting, accountant=pld)
        for accounting in ACCOUNTINGS
    }
    assert together - 1e-6 <= spent["renyi"] < spent["basic"]
    assert spent["branch"] == spent["renyi"]


def test_the_accountings_are_ordered() -> None:
    campaign = grouped((1.5, 1.2, 1.0), ((0.3, 0.15), (0.2, 0.03)), Exponential(epsilon=0.05))
    for accountant in (RdpAccountant(), PldAccountant()):
        basic, additive, branch = (
            campaign_epsilon(campaign, delta=1e-5, accounting=name, accountant=accountant) for name in ACCOUNTINGS
        )
        assert branch < additive < basic
        for name, spent in zip(ACCOUNTINGS, (basic, additive, branch), strict=True):
            delta = campaign_delta(campaign, epsilon=spent, accounting=name, accountant=accountant)
            assert delta == pytest.approx(1e-5, rel=1e-6)


@pytest.mark.parametrize("size", [3.0, 300.0, 400.0, 900.0])
def test_huge_selections_do_not_vanish(size: float) -> None:
    # Exponentials of such ε underflow; the answer must not.
    campaign = CampaignHistory(training=((), ()), selections=(Released(choice=Laplace(epsilon=size)),))
    for accounting in ("renyi", "branch"):
        spent = campaign_epsilon(campaign, delta=1e-5, accounting=accounting, accountant=PldAccountant())
        assert PldAccountant().epsilon([(Laplace(epsilon=size), 1)], 1e-5) * (1 - 1e-6) <= spent <= size * 1.001
