"""What both accountants answer at the edges, and that faster forms are never below the real ones."""

import math

import pytest
from histories import FIVE_PHASE_HISTORY, step

from dpal.errors import InvalidArgument
from dpal.privacy.accountants import ACCOUNTANTS, PldAccountant, RdpAccountant, accountant_named
from dpal.privacy.campaign_history import CampaignHistory
from dpal.privacy.mechanisms import Gaussian

NAN = float("nan")


@pytest.mark.parametrize("delta", [0, 1, -1e-5, 2, NAN])
@pytest.mark.parametrize("name", sorted(ACCOUNTANTS))
def test_a_bad_delta_is_named(name: str, delta: float) -> None:
    with pytest.raises(InvalidArgument, match="delta is"):
        ACCOUNTANTS[name].epsilon([(step(0.1, 1), 1)], delta)


@pytest.mark.parametrize("epsilon", [-1, NAN, math.inf])
@pytest.mark.parametrize("name", sorted(ACCOUNTANTS))
def test_a_bad_epsilon_is_named(name: str, epsilon: float) -> None:
    with pytest.raises(InvalidArgument, match="epsilon is"):
        ACCOUNTANTS[name].delta([(step(0.1, 1), 1)], epsilon)


@pytest.mark.parametrize("name", sorted(ACCOUNTANTS))
def test_doing_nothing_costs_nothing(name: str) -> None:
    assert ACCOUNTANTS[name].epsilon([], 1e-5) == 0
    assert ACCOUNTANTS[name].epsilon([(step(0, 1), 10)], 1e-5) == 0
    assert ACCOUNTANTS[name].delta([], 0.5) == 0


def test_an_unknown_accountant_is_named() -> None:
    with pytest.raises(InvalidArgument, match="accountant is 'prv', but must be one of pld, rdp"):
        accountant_named("prv")


@pytest.mark.parametrize("name", sorted(ACCOUNTANTS))
def test_a_campaign_without_selections_costs_what_its_training_costs(name: str) -> None:
    accountant, history = ACCOUNTANTS[name], [(step(0.1, 1.0), 20)]
    campaign = CampaignHistory(training=(history,))
    for follow in (True, False):
        whole = accountant.campaign_epsilon(campaign, 1e-5, follow_branches=follow)
        assert whole == pytest.approx(accountant.epsilon(history, 1e-5), rel=1e-6)
        assert accountant.campaign_delta(campaign, 1.0, follow_branches=follow) == pytest.approx(
            accountant.delta(history, 1.0), rel=1e-6
        )


def test_what_searches_use_is_never_below_what_certifies() -> None:
    pld, rdp = PldAccountant(), RdpAccountant()
    assert pld.for_searches(0.5) == pld and rdp.for_searches(8) == rdp
    # As coarse as the target allows: doubled for every doubling, at most 32 times.
    assert [pld.for_searches(target).interval / pld.interval for target in (1, 2, 8, 9, 1000)] == [1, 2, 8, 8, 32]
    exact = pld.epsilon(FIVE_PHASE_HISTORY, 1e-5)
    assert exact <= pld.for_searches(8).epsilon(FIVE_PHASE_HISTORY, 1e-5) <= exact * 1.001
    fewer = rdp.at_orders((2.0, 8.0, 32.0))
    assert fewer.epsilon(FIVE_PHASE_HISTORY, 1e-5) >= rdp.epsilon(FIVE_PHASE_HISTORY, 1e-5)


def test_a_gaussian_by_the_formula_and_by_hand() -> None:
    """At one order, ε is α/2 + log((α − 1)/α) − log(δα)/(α − 1) for noise 1: arXiv:2004.00010 Prop. 12."""
    by_hand = 2.0 + math.log(3 / 4) - math.log(1e-5 * 4) / 3
    found = RdpAccountant(orders=(4.0,)).epsilon([(Gaussian(noise_multiplier=1), 1)], 1e-5)
    assert found == pytest.approx(by_hand, rel=1e-14)


@pytest.mark.parametrize("interval", [0, -1e-4, NAN, math.inf])
def test_a_bad_interval_is_named(interval: float) -> None:
    with pytest.raises(InvalidArgument, match="interval is"):
        PldAccountant(interval=interval)
