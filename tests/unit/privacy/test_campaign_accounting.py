"""One ε for training and selection together, with the sums of basic accounting done by hand."""

import pytest
from histories import step

from dpal.errors import InvalidArgument
from dpal.privacy.accountants import RdpAccountant
from dpal.privacy.campaign_accounting import ACCOUNTINGS, campaign_delta, campaign_epsilon
from dpal.privacy.campaign_history import CampaignHistory, Released
from dpal.privacy.mechanisms import Gaussian, Laplace, PureDP

RDP = RdpAccountant()
HEAVY, LIGHT = [(step(0.1, 1.0), 50)], [(step(0.1, 1.0), 10)]
SELECTIONS = (Released(choice=PureDP(epsilon=0.5)), Released(choice=PureDP(epsilon=0.25), threshold=Laplace(epsilon=1)))


def epsilon(campaign: CampaignHistory, accounting: str = "basic") -> float:
    return campaign_epsilon(campaign, delta=1e-5, accounting=accounting, accountant=RDP)


def test_basic_accounting_adds_up_what_a_group_has_been_through() -> None:
    heavy, light = RDP.epsilon(HEAVY, 1e-5), RDP.epsilon(LIGHT, 1e-5)
    assert epsilon(CampaignHistory(training=(HEAVY, LIGHT, LIGHT), selections=SELECTIONS)) == pytest.approx(
        max(heavy, light + 1.75)
    )
    assert epsilon(CampaignHistory(training=(LIGHT, HEAVY, LIGHT), selections=SELECTIONS)) == pytest.approx(heavy + 0.5)


def test_a_record_that_is_never_selected_pays_for_every_selection() -> None:
    for accounting in ACCOUNTINGS:
        nobody_trains = CampaignHistory(training=((), (), ()), selections=SELECTIONS)
        # Rényi orders end at 512, so those accountings may be a little above the sum of the pure ε.
        assert 0 < epsilon(nobody_trains, accounting) <= 1.01 * 1.75
    assert epsilon(nobody_trains) == pytest.approx(1.75)


def test_delta_and_epsilon_are_inverse_and_delta_fails_closed() -> None:
    campaign = CampaignHistory(training=(HEAVY, LIGHT, LIGHT), selections=SELECTIONS)
    for accounting in ACCOUNTINGS:
        spent = epsilon(campaign, accounting)
        found = campaign_delta(campaign, epsilon=spent, accounting=accounting, accountant=RDP)
        assert found == pytest.approx(1e-5, rel=1e-6)
    # Selections alone cost more than this ε: no δ below 1 holds.
    assert campaign_delta(campaign, epsilon=1.7, accounting="basic", accountant=RDP) == 1


def test_no_accounting_is_below_the_training_of_any_group() -> None:
    campaign = CampaignHistory(training=(LIGHT, LIGHT, HEAVY), selections=SELECTIONS)
    for accounting in ACCOUNTINGS:
        assert epsilon(campaign, accounting) >= RDP.epsilon(HEAVY, 1e-5)


def test_mistakes_are_named() -> None:
    campaign = CampaignHistory(training=(LIGHT, LIGHT), selections=(Released(choice=Gaussian(noise_multiplier=9)),))
    with pytest.raises(InvalidArgument, match="a pure-DP one"):
        epsilon(campaign)
    assert epsilon(campaign, "renyi") > RDP.epsilon(LIGHT, 1e-5)
    for call in (campaign_epsilon, campaign_delta):
        budget = {"delta": 1e-5} if call is campaign_epsilon else {"epsilon": 1.0}
        with pytest.raises(InvalidArgument, match="accounting is 'magic', but must be one of basic, renyi, branch"):
            call(campaign, accounting="magic", accountant=RDP, **budget)
