"""Campaigns that begin with a private mean of the pool, by accountants that are not ours and by direct integrals."""

import math
import warnings

import numpy as np
import pytest
from histories import step
from scipy.stats import norm

import dpal
from dpal.errors import InvalidArgument
from dpal.privacy.accountants import PldAccountant, RdpAccountant
from dpal.privacy.campaign_accounting import campaign_delta, campaign_epsilon
from dpal.privacy.campaign_history import CampaignHistory, Released
from dpal.privacy.campaign_profile import CampaignProfile
from dpal.privacy.losses import Direction
from dpal.privacy.mechanisms import Exponential, Gaussian
from dpal.privacy.pld import privacy_profile

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pld = pytest.importorskip("dp_accounting.pld", reason="needs dp-accounting (pip install dpal[peers])")

DELTA = 1e-5
MEANS = [1.0, 3.0, 10.0]


def gaussian(noise: float):
    return pld.privacy_loss_distribution.from_gaussian_mechanism(noise, value_discretization_interval=1e-4)


def history(mean: float | None, groups, cuts=()) -> CampaignHistory:
    return CampaignHistory(
        training=tuple(((step(rate, noise), steps),) if steps else () for rate, noise, steps in groups),
        selections=tuple(Released(choice=None, threshold=Exponential(epsilon=size)) for size in cuts),
        mean=None if mean is None else Gaussian(noise_multiplier=mean),
    )


def delta(campaign: CampaignHistory, epsilon: float, accounting: str = "branch") -> float:
    return campaign_delta(campaign, epsilon=epsilon, accounting=accounting, accountant=PldAccountant())


@pytest.mark.parametrize("mean", MEANS)
def test_a_record_of_the_initial_set_equals_dp_accounting(mean: float) -> None:
    trained = pld.privacy_loss_distribution.from_gaussian_mechanism(
        2.0, sampling_prob=0.1, value_discretization_interval=1e-4
    ).self_compose(200)
    expected = trained.compose(gaussian(mean)).get_epsilon_for_delta(DELTA)
    campaign = history(mean, [(0.1, 2.0, 200)])
    for accounting in ("renyi", "branch"):
        spent = campaign_epsilon(campaign, delta=DELTA, accounting=accounting, accountant=PldAccountant())
        assert expected * (1 - 1e-6) <= spent <= expected * (1 + 1e-3)


@pytest.mark.parametrize("mean", MEANS)
def test_a_record_that_is_never_selected_pays_for_the_mean(mean: float) -> None:
    # Nobody trains, and the cut's ε is next to nothing.
    campaign = history(mean, [(0.1, 2.0, 0), (0.1, 2.0, 0)], cuts=(1e-6,))
    expected = gaussian(mean).get_epsilon_for_delta(DELTA)
    spent = campaign_epsilon(campaign, delta=DELTA, accounting="branch", accountant=PldAccountant())
    assert expected * (1 - 1e-6) <= spent <= expected * (1 + 2e-3) + 1e-5


# Two lives of very different shape: many small losses against one large one.
TWO_LIVES = [
    (1.0, ((0.1, 2.0, 0), (0.001, 0.3, 20), (1.0, 1.2, 1)), (0.02, 0.02)),
    (3.0, ((0.1, 2.0, 0), (0.05, 2.0, 300), (0.5, 3.0, 9)), (0.3, 0.6)),
]


def following(campaign: CampaignHistory, direction: Direction):
    """δ at any ε of what comes after the mean."""
    rest = CampaignHistory(training=campaign.training, selections=campaign.selections)
    profile = CampaignProfile.of(rest)
    return lambda asked: profile._after(0, np.asarray(asked, dtype=np.float64), direction)


def by_integral(campaign: CampaignHistory, epsilon: float) -> float:
    """E over the mean's loss, which is N(1/2σ², 1/σ²), of δ of what follows: a sum over 4,001 equal steps."""
    sigma = campaign.mean.noise_multiplier
    losses = np.linspace(-9 / sigma, 9 / sigma, 4001) + 1 / (2 * sigma**2)
    weights = norm.pdf(losses, loc=1 / (2 * sigma**2), scale=1 / sigma) * (losses[1] - losses[0])
    return max(float(weights @ following(campaign, direction)(epsilon - losses)) for direction in Direction)


@pytest.mark.parametrize(("mean", "groups", "cuts"), TWO_LIVES)
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_lives_that_depend_on_the_mean_equal_a_direct_integral(mean, groups, cuts, epsilon: float) -> None:
    campaign = history(mean, groups, cuts)
    expected = by_integral(campaign, epsilon)
    assert expected * (1 - 1e-4) <= delta(campaign, epsilon) <= expected * 1.02 + 1e-12


def test_taking_the_maximum_over_lives_last_would_be_too_small() -> None:
    """The planted mistake: the mean as part of each group's own history, the worst life chosen once."""
    mean, groups, cuts = TWO_LIVES[0]
    campaign = history(mean, groups, cuts)
    before = (Gaussian(noise_multiplier=mean), 1)
    mistaken = CampaignHistory(
        training=tuple((before, *entries) for entries in campaign.training), selections=campaign.selections
    )
    ratios = [delta(mistaken, epsilon) / by_integral(campaign, epsilon) for epsilon in np.linspace(0.5, 6.0, 12)]
    assert min(ratios) < 0.99
    right = [delta(campaign, epsilon) / by_integral(campaign, epsilon) for epsilon in np.linspace(0.5, 6.0, 12)]
    assert min(right) > 1 - 1e-4


@pytest.mark.parametrize("mean", MEANS)
def test_renyi_adds_the_gaussian_curve_and_is_above_pld(mean: float) -> None:
    groups, cuts = ((0.02, 2.0, 300), (0.05, 2.0, 100), (0.2, 2.0, 30)), (0.3, 0.6)
    orders = (2.0, 4.0, 16.0)
    from dpal.privacy.campaign_curve import campaign_curve

    with_mean = campaign_curve(history(mean, groups, cuts), orders)
    without = campaign_curve(history(None, groups, cuts), orders)
    assert with_mean == pytest.approx(without + np.asarray(orders) / (2 * mean**2), rel=1e-9)
    campaign = history(mean, groups, cuts)
    tight, loose = (
        campaign_epsilon(campaign, delta=DELTA, accounting="branch", accountant=accountant)
        for accountant in (PldAccountant(), RdpAccountant())
    )
    assert tight <= loose


def test_plans_with_a_mean_end_at_their_target_and_everybody_pays_for_it() -> None:
    mean_alone = privacy_profile([(Gaussian(noise_multiplier=5.0), 1)], Direction.RECORD_FIRST).epsilon(DELTA)
    for planner in ("scouting", "step-amplification", "no-al", "naive"):
        plan = dpal.plan(
            pool_size=2_000,
            target_epsilon=8,
            target_delta=DELTA,
            labelling_budget=600,
            epochs=10,
            planner=planner,
            mean_noise_multiplier=5.0,
        )
        assert plan.epsilon <= 8
        assert plan.groups[0].epsilon_by_phase[-1] > 7.9
        assert plan.never_selected_epsilon_by_phase[-1] >= mean_alone * (1 - 1e-3)
        without = dpal.plan(
            pool_size=2_000, target_epsilon=8, target_delta=DELTA, labelling_budget=600, epochs=10, planner=planner
        )
        # What the mean takes, training cannot have.
        assert plan.phases[-1].noise_multiplier > without.phases[-1].noise_multiplier
        assert math.isclose(plan.phases[-1].noise_multiplier, without.phases[-1].noise_multiplier, rel_tol=0.05)


def test_basic_accounting_has_no_place_for_a_mean() -> None:
    with pytest.raises(InvalidArgument, match="renyi or branch with a private mean"):
        campaign_epsilon(history(3.0, [(0.1, 2.0, 10)]), delta=DELTA, accounting="basic", accountant=PldAccountant())
    with pytest.raises(InvalidArgument, match="renyi or branch with a private mean"):
        dpal.plan(pool_size=2_000, target_epsilon=8, accounting="basic", mean_noise_multiplier=5.0)
