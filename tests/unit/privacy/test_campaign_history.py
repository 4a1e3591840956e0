"""A campaign's history: one group more than selections, and which mechanisms have a pure ε."""

import math

import pytest
from histories import step

from dpal.errors import InvalidArgument
from dpal.privacy.campaign_history import CampaignHistory, Released, pure_epsilon
from dpal.privacy.history import CanonicalHistory
from dpal.privacy.mechanisms import BernoulliSelection, DiscreteLaplace, Exponential, Gaussian, Laplace, PureDP


@pytest.mark.parametrize("groups", [0, 1, 3])
def test_there_is_one_group_more_than_selections(groups: int) -> None:
    with pytest.raises(InvalidArgument, match=f"the number of groups is {groups}, but must be 2"):
        CampaignHistory(training=((),) * groups, selections=(Released(choice=None),))


def test_training_is_kept_in_its_canonical_form() -> None:
    campaign = CampaignHistory(training=([(step(0.1, 1), 2), (step(0.1, 1), 3)],))
    assert campaign.training == (((step(0.1, 1), 5),),)
    assert isinstance(campaign.training[0], CanonicalHistory)


def test_the_threshold_comes_before_the_choice() -> None:
    threshold, choice = Laplace(epsilon=0.1), PureDP(epsilon=1.0)
    assert Released(choice=choice, threshold=threshold).mechanisms() == (threshold, choice)
    assert Released(choice=None, threshold=threshold).mechanisms() == (threshold,)
    assert Released(choice=None).mechanisms() == ()


def test_pure_epsilon_by_hand() -> None:
    for kind in (Laplace, Exponential, PureDP):
        assert pure_epsilon(kind(epsilon=0.7)) == 0.7
    assert pure_epsilon(DiscreteLaplace(epsilon=0.7, grid_steps=4)) == 0.7
    # Being taken is 3 times as likely, being passed over 1/3 as likely: the larger ratio counts, whichever bit it is.
    assert pure_epsilon(BernoulliSelection(probability_high=0.3, probability_low=0.1)) == pytest.approx(math.log(3))
    assert pure_epsilon(BernoulliSelection(probability_high=0.9, probability_low=0.7)) == pytest.approx(math.log(3))


@pytest.mark.parametrize("mechanism", [Gaussian(noise_multiplier=5), step(0.1, 1)])
def test_noise_without_a_pure_epsilon_is_refused(mechanism: Gaussian) -> None:
    with pytest.raises(InvalidArgument, match="a pure-DP one"):
        pure_epsilon(mechanism)
