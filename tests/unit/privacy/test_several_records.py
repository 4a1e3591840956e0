"""Campaigns as several records live through them: what each is charged, and searches that end on the safe side."""

import math
from dataclasses import replace

import pytest

from dpal.errors import InvalidArgument
from dpal.privacy.accountants import PldAccountant, RdpAccountant
from dpal.privacy.campaign_accounting import ACCOUNTINGS, campaign_epsilon
from dpal.privacy.campaign_history import Released
from dpal.privacy.mechanisms import BernoulliSelection, DiscreteLaplace, Exponential, Gaussian, PureDP
from dpal.privacy.mixture_of_gaussians import MixtureOfGaussians
from dpal.privacy.several_records import (
    DIRECT,
    GENERIC,
    PhasedCampaign,
    TrainingPhase,
    direct_delta,
    direct_histories,
    several_records_delta,
    several_records_epsilon,
)

CUT = Released(choice=None, threshold=Exponential(epsilon=0.1))
CAMPAIGN = PhasedCampaign(
    phases=(
        TrainingPhase(sampling_probabilities=(0.1,), noise_multiplier=4.0, steps=10),
        TrainingPhase(sampling_probabilities=(0.02, 0.05), noise_multiplier=3.0, steps=40),
        TrainingPhase(sampling_probabilities=(0.01, 0.03, 0.08), noise_multiplier=3.0, steps=20),
    ),
    selections=(CUT, CUT),
    mean=Gaussian(noise_multiplier=30.0),
)


def with_selection(**released) -> PhasedCampaign:
    return PhasedCampaign(phases=CAMPAIGN.phases[:2], selections=(Released(**released),))


def test_records_are_charged_their_groups_rates_and_every_cut() -> None:
    histories = direct_histories(CAMPAIGN, 2)
    assert histories is not None and len(histories) == 3
    nobody, one, both = (dict(history) for history in histories)
    cut = {Exponential(epsilon=0.2): 2}
    mean = {Gaussian(noise_multiplier=15.0): 1}
    later = {
        MixtureOfGaussians(rates=((0.05, 2),), noise_multiplier=3.0): 40,
        MixtureOfGaussians(rates=((0.08, 2),), noise_multiplier=3.0): 20,
    }
    assert nobody == cut | mean | later
    assert one[MixtureOfGaussians(rates=((0.02, 1), (0.05, 1)), noise_multiplier=3.0)] == 40
    assert one[Exponential(epsilon=0.1)] == 2
    assert both[MixtureOfGaussians(rates=((0.1, 2),), noise_multiplier=4.0)] == 10
    assert not any(isinstance(kind, Exponential) for kind in both)


def test_ranges_of_the_initial_set_only_raise_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = direct_delta(CAMPAIGN, records=6, epsilon=4.0)
    for ranges in (1, 3):
        monkeypatch.setattr("dpal.privacy.several_records._MOST_RANGES", ranges)
        histories = direct_histories(CAMPAIGN, 6)
        assert histories is not None and len(histories) == ranges
        coarse = direct_delta(CAMPAIGN, records=6, epsilon=4.0)
        assert coarse >= exact
    assert direct_delta(CAMPAIGN, records=6, epsilon=4.0) < 1


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (BernoulliSelection(probability_high=0.3, probability_low=0.1), 3),
        (DiscreteLaplace(epsilon=0.5, grid_steps=10), 3),
        (PureDP(epsilon=0.5), PureDP(epsilon=1.5)),
    ],
)
def test_released_choices(choice, expected) -> None:
    histories = direct_histories(with_selection(choice=choice), 3)
    assert histories is not None
    entries = dict(histories[0])
    assert entries[choice] == expected if isinstance(expected, int) else entries[expected] == 1


def test_without_knowing_the_selection_there_is_only_the_generic_bound() -> None:
    unknown = replace(CAMPAIGN, records_are_separate=False)
    assert direct_histories(unknown, 2) is None
    assert direct_delta(unknown, records=2, epsilon=1.0) == 1.0
    asked = {"delta": 1e-5, "accounting": "branch", "accountant": PldAccountant()}
    # With few records the generic bound may be the smaller one: the direct one charges the worst group in every phase.
    known = several_records_epsilon(CAMPAIGN, records=2, **asked)
    assert known == several_records_epsilon(unknown, records=2, **asked)
    assert (known.bound, known.epsilon < math.inf) == (GENERIC, True)
    direct, generic = (several_records_epsilon(each, records=30, **asked) for each in (CAMPAIGN, unknown))
    assert (direct.bound, generic.bound) == (DIRECT, GENERIC)
    assert direct.epsilon < generic.epsilon
    # Selections too large to account for together.
    assert direct_histories(with_selection(choice=PureDP(epsilon=400.0)), 3) is None


@pytest.mark.parametrize("accountant", [PldAccountant(), RdpAccountant()], ids=["pld", "rdp"])
@pytest.mark.parametrize("accounting", ACCOUNTINGS)
def test_an_epsilon_was_evaluated_and_one_record_has_the_campaigns(accounting: str, accountant) -> None:
    campaign = with_selection(choice=None, threshold=Exponential(epsilon=0.1))
    one = campaign_epsilon(campaign.as_one_record(), delta=1e-5, accounting=accounting, accountant=accountant)
    last = 0.0
    for records in (1, 2, 4):
        asked = {"records": records, "accounting": accounting, "accountant": accountant}
        spent = several_records_epsilon(campaign, delta=1e-5, **asked)
        assert spent.epsilon == one or records > 1
        assert spent.epsilon > last
        last = spent.epsilon
        if records > 1:
            assert several_records_delta(campaign, epsilon=spent.epsilon, **asked) <= 1e-5
            assert several_records_delta(campaign, epsilon=0.99 * spent.epsilon, **asked) > 1e-5


def test_nothing_costs_nothing_and_a_tiny_delta_has_no_direct_account() -> None:
    nothing = PhasedCampaign(phases=())
    asked = {"records": 3, "accounting": "branch", "accountant": PldAccountant()}
    assert several_records_epsilon(nothing, delta=1e-5, **asked).epsilon == 0
    tiny = several_records_epsilon(CAMPAIGN, delta=1e-300, **asked)
    assert math.isinf(tiny.epsilon)


def test_impossible_campaigns_and_arguments_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="sampling probabilities"):
        PhasedCampaign(phases=CAMPAIGN.phases, selections=(CUT,))
    asked = {"accounting": "branch", "accountant": PldAccountant()}
    for records in (0, 1.5, 1001):
        with pytest.raises(InvalidArgument, match="records"):
            several_records_epsilon(CAMPAIGN, records=records, delta=1e-5, **asked)
    with pytest.raises(InvalidArgument, match="delta"):
        several_records_epsilon(CAMPAIGN, records=2, delta=0.0, **asked)
