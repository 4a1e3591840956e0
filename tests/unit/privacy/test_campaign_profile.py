"""δ(ε) of campaigns that can be written down; golden tests compare deeper ones with brute force."""

import math

import numpy as np
import pytest
from counted import counted
from histories import step

from dpal.errors import InvalidArgument
from dpal.privacy.accountants import PldAccountant
from dpal.privacy.campaign_history import CampaignHistory, Released
from dpal.privacy.campaign_profile import CampaignProfile, _chords
from dpal.privacy.mechanisms import BernoulliSelection, Exponential, Laplace, PureDP

HIGH, LOW = 0.6, 0.2
COIN = BernoulliSelection(probability_high=HIGH, probability_low=LOW)


def profile(*selections: Released, follow: bool = True) -> CampaignProfile:
    campaign = CampaignHistory(training=((),) * (len(selections) + 1), selections=selections)
    return CampaignProfile.of(campaign, follow_branches=follow)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.6, 1.0, 2.0])
def test_a_coin_alone_by_hand(epsilon: float) -> None:
    grown = math.exp(epsilon)
    true = max(0.0, HIGH - grown * LOW, (1 - LOW) - grown * (1 - HIGH))
    assert profile(Released(choice=COIN)).delta(epsilon) == pytest.approx(true, abs=1e-12)
    # Without branches it is rounded, and only upwards.
    assert true - 1e-12 <= profile(Released(choice=COIN), follow=False).delta(epsilon) <= true + 0.02


def test_a_coin_alone_has_the_epsilon_of_its_larger_ratio() -> None:
    assert profile(Released(choice=COIN)).epsilon(1e-9) == pytest.approx(math.log(HIGH / LOW), abs=1e-6)


def test_a_selection_that_looks_at_nothing_costs_nothing() -> None:
    assert profile(Released(choice=None), Released(choice=None)).delta(0.0) == 0
    assert profile().epsilon(1e-5) == 0


def test_whoever_waits_longer_pays_for_more_selections() -> None:
    pure = Released(choice=PureDP(epsilon=0.4))
    spent = [profile(*[pure] * count).epsilon(1e-12) for count in (1, 2, 3)]
    assert spent == pytest.approx([0.4, 0.8, 1.2], abs=5e-3)
    # Never below: each rounding is upwards.
    assert all(found >= 0.4 * count - 1e-9 for found, count in zip(spent, (1, 2, 3), strict=True))


def test_a_threshold_that_is_released_alone_is_paid_for() -> None:
    cut = Released(choice=None, threshold=Laplace(epsilon=0.5))
    assert profile(cut).epsilon(1e-12) == pytest.approx(0.5, abs=1e-2)
    assert profile(cut).epsilon(1e-12) >= 0.5 - 1e-9
    # Below its pure ε it is the Laplace mechanism's own δ, and not all or nothing.
    true = -math.expm1((0.25 - 0.5) / 2)
    assert true - 1e-12 <= profile(cut).delta(0.25) <= true + 0.01


def test_training_of_the_first_group_counts_alone() -> None:
    history = [(step(0.1, 1.0), 10)]
    campaign = CampaignHistory(training=(history, ()), selections=(Released(choice=None),))
    assert CampaignProfile.of(campaign).epsilon(1e-5) == pytest.approx(PldAccountant().epsilon(history, 1e-5), rel=1e-6)


def test_what_lies_between_nodes_is_never_below_the_curve() -> None:
    """Hockey sticks are convex in exp(ε): a chord there is above, and exact at its ends."""
    nodes = np.array([-1.0, 0.0, 2.0])

    def stick(epsilon: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, 0.7 - np.exp(epsilon) * 0.2)

    asked = np.linspace(-1, 2, 50)
    assert (_chords(nodes, stick(nodes))(asked) >= stick(asked) - 1e-15).all()
    assert _chords(nodes, stick(nodes))(nodes) == pytest.approx(stick(nodes))
    assert _chords(nodes[:1], stick(nodes[:1]))(np.array([-1.0])) == pytest.approx(stick(nodes[:1]))


@pytest.mark.parametrize(("low", "high"), [(-3.0, 12.0), (0.0, 1e-3), (-700.0, 700.0), (5.0, 5.0000001)])
def test_places_on_an_even_grid_are_those_of_a_search(low: float, high: float) -> None:
    nodes = np.linspace(low, high, 1024)
    asked = np.concatenate([np.linspace(low, high, 9_001), nodes, np.nextafter(nodes, low), np.nextafter(nodes, high)])
    asked = np.clip(asked, low, high)
    values = np.exp(-nodes / 50)
    assert np.array_equal(_chords(nodes, values, even=True)(asked), _chords(nodes, values)(asked))


@pytest.mark.parametrize("selections", [5, 10, 20])
def test_an_epsilon_takes_few_evaluations_however_many_selections(
    selections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = tuple([(step(0.1, 2.0), 10 * (1 + group))] for group in reversed(range(selections + 1)))
    cut = Released(choice=None, threshold=Exponential(epsilon=0.1))
    found = CampaignProfile.of(CampaignHistory(training=training, selections=(cut,) * selections), 1e-3)
    evaluations = counted(monkeypatch, CampaignProfile, "_delta")
    spent = found.epsilon(1e-5)
    assert len(evaluations) <= 10
    # A search ends on the safe side, and close to it.
    assert found.delta(spent) <= 1e-5 < found.delta(spent - 1e-7)


def test_the_larger_of_both_directions_decides() -> None:
    for choice in (COIN, BernoulliSelection(probability_high=1 - LOW, probability_low=1 - HIGH)):
        released = profile(Released(choice=choice))
        spent = released.epsilon(1e-9)
        assert released.delta(spent) <= 1e-9 < released.delta(spent - 1e-6)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InvalidArgument, match="delta is 0"):
        profile().epsilon(0)
    with pytest.raises(InvalidArgument, match="epsilon is nan"):
        profile().delta(math.nan)
