"""Rényi curves of a campaign with one selection, by hand; golden tests compare deeper ones with brute force."""

import math

import numpy as np
import pytest
from histories import step

from dpal.privacy.campaign_curve import branch_options, campaign_curve
from dpal.privacy.campaign_history import CampaignHistory, Released
from dpal.privacy.losses import Direction
from dpal.privacy.mechanisms import BernoulliSelection, Laplace
from dpal.privacy.renyi import renyi_curve

HIGH, LOW = 0.6, 0.2
COIN = BernoulliSelection(probability_high=HIGH, probability_low=LOW)
TRAINING = [(step(0.2, 1.0), 10)]
ORDERS = (2.0, 3.0)


def test_a_selection_without_training_costs_its_coin() -> None:
    campaign = CampaignHistory(training=((), ()), selections=(Released(choice=COIN),))
    assert campaign_curve(campaign, ORDERS) == pytest.approx(renyi_curve([(COIN, 1)], ORDERS))


def test_order_two_by_hand() -> None:
    """The expectation over the coin of what follows: training if taken, nothing if passed over; the worst of all."""
    campaign = CampaignHistory(training=((), TRAINING), selections=(Released(choice=COIN),))
    trained = math.exp(renyi_curve(TRAINING, (2.0,))[0])
    moments = [a**2 / b * trained + (1 - a) ** 2 / (1 - b) for a, b in ((HIGH, LOW), (LOW, HIGH), (LOW, LOW))]
    assert campaign_curve(campaign, (2.0,)) == pytest.approx([math.log(max(moments))])


def test_without_branches_everyone_pays_for_both() -> None:
    campaign = CampaignHistory(training=((), TRAINING), selections=(Released(choice=COIN),))
    both = renyi_curve([*TRAINING, (COIN, 1)], ORDERS)
    assert campaign_curve(campaign, ORDERS, follow_branches=False) == pytest.approx(both)
    assert (campaign_curve(campaign, ORDERS) < both).all()


def test_a_released_threshold_is_paid_in_full() -> None:
    noise = Laplace(epsilon=0.3)
    plain = CampaignHistory(training=((), TRAINING), selections=(Released(choice=COIN),))
    released = CampaignHistory(training=((), TRAINING), selections=(Released(choice=COIN, threshold=noise),))
    expected = campaign_curve(plain, ORDERS) + renyi_curve([(noise, 1)], ORDERS)
    assert campaign_curve(released, ORDERS) == pytest.approx(expected)


def test_the_first_group_may_be_the_worst() -> None:
    heavy = [(step(0.2, 1.0), 100)]
    campaign = CampaignHistory(training=(heavy, ()), selections=(Released(choice=None),))
    assert np.array_equal(campaign_curve(campaign, ORDERS), renyi_curve(heavy, ORDERS))


def test_a_blank_is_always_below_the_threshold() -> None:
    assert branch_options(COIN, Direction.RECORD_FIRST) == ((LOW, LOW), (HIGH, LOW))
    assert branch_options(COIN, Direction.BLANK_FIRST) == ((LOW, LOW), (LOW, HIGH))
