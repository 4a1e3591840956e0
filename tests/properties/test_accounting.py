"""What must hold for every history."""

import json
import math
from dataclasses import fields
from itertools import pairwise

import pytest
from histories import step
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpal.privacy import mechanisms
from dpal.privacy.accountants import ACCOUNTANTS, PldAccountant, RdpAccountant, accountant_named
from dpal.privacy.calibration import noise_multiplier_for, sampling_probability_for, steps_for
from dpal.privacy.campaign_accounting import campaign_epsilon
from dpal.privacy.campaign_curve import campaign_curve
from dpal.privacy.campaign_history import CampaignHistory, Released
from dpal.privacy.mechanisms import MECHANISMS, BernoulliSelection, Exponential, Mechanism, mechanism_from_json
from dpal.privacy.renyi import renyi_curve

DELTA = 1e-5
BOTH = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.exhaustive if name == "pld" else ()) for name in sorted(ACCOUNTANTS)]
)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("ci")

rates = st.floats(1e-4, 1.0)
noises = st.floats(0.7, 20.0)
few_steps = st.integers(1, 300)
sampled_phases = st.lists(st.tuples(rates, noises, few_steps), min_size=1, max_size=4)
# Every class of mechanism, found by reflection, with fields drawn by their names.
# (A dataclass with slots is made twice; the module keeps the second. Steps of several records are in another module.)
KINDS = [kind for kind in Mechanism.__subclasses__() if getattr(mechanisms, kind.__name__, None) is kind]


def values_for(field_name: str) -> st.SearchStrategy[float]:
    return {
        "sampling_probability": rates,
        "noise_multiplier": noises,
        "epsilon": st.floats(0.01, 3.0),
        "probability_high": st.floats(0.01, 0.95),
        "probability_low": st.floats(0.01, 0.95),
        "grid_steps": st.integers(1, 300),
        "participation": st.floats(0.05, 1.0),
    }[field_name]


def instances(kind: type[Mechanism]) -> st.SearchStrategy[Mechanism]:
    return st.builds(kind, **{field.name: values_for(field.name) for field in fields(kind)})


any_mechanism = st.one_of(*(instances(kind) for kind in KINDS))
any_history = st.lists(st.tuples(any_mechanism, st.integers(1, 20)), min_size=1, max_size=4)


def history_of(phases: list[tuple[float, float, int]]):
    return [(step(q, noise), steps) for q, noise, steps in phases]


def test_reflection_finds_every_mechanism() -> None:
    assert set(KINDS) == set(MECHANISMS.values())
    assert len(KINDS) == 8


@BOTH
@given(phases=sampled_phases, more=st.integers(1, 200))
def test_more_steps_never_cost_less(name: str, phases, more: int) -> None:
    accountant = accountant_named(name)
    q, noise, steps = phases[0]
    longer = [(q, noise, steps + more), *phases[1:]]
    # PLD windows and rounding move with the history, so its answers may differ by their own precision.
    assert accountant.epsilon(history_of(longer), DELTA) >= accountant.epsilon(history_of(phases), DELTA) * (1 - 1e-8)


@BOTH
@given(phases=sampled_phases, factor=st.floats(1.0, 2.0))
def test_a_higher_rate_never_costs_less(name: str, phases, factor: float) -> None:
    accountant = accountant_named(name)
    q, noise, steps = phases[0]
    higher = [(min(1.0, q * factor), noise, steps), *phases[1:]]
    assert accountant.epsilon(history_of(higher), DELTA) >= accountant.epsilon(history_of(phases), DELTA) * (1 - 1e-8)


@BOTH
@given(phases=sampled_phases, factor=st.floats(1.0, 3.0))
def test_more_noise_never_costs_more(name: str, phases, factor: float) -> None:
    accountant = accountant_named(name)
    q, noise, steps = phases[0]
    noisier = [(q, noise * factor, steps), *phases[1:]]
    assert accountant.epsilon(history_of(noisier), DELTA) <= accountant.epsilon(history_of(phases), DELTA) * (1 + 1e-8)


@BOTH
@given(history=any_history, data=st.data())
def test_the_order_does_not_matter(name: str, history, data) -> None:
    shuffled = data.draw(st.permutations(history))
    accountant = accountant_named(name)
    assert accountant.epsilon(shuffled, DELTA) == accountant.epsilon(history, DELTA)


@BOTH
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@settings(max_examples=15)
@given(data=st.data(), times=st.integers(2, 12))
def test_a_count_means_that_many(name: str, kind: type[Mechanism], data, times: int) -> None:
    mechanism = data.draw(instances(kind))
    accountant = accountant_named(name)
    at_once = accountant.epsilon([(mechanism, times)], DELTA)
    assert at_once == accountant.epsilon([(mechanism, 1)] * times, DELTA)
    # And the count matters: dp-accounting 0.6.0 ignores it for some mechanisms.
    assert renyi_curve([(mechanism, times)]) == pytest.approx(times * renyi_curve([(mechanism, 1)]), rel=1e-12)
    if accountant.delta([(mechanism, 1)], 0.0) > 1e-6:
        assert accountant.delta([(mechanism, times)], 0.0) > accountant.delta([(mechanism, 1)], 0.0)


@BOTH
@settings(max_examples=25)
@given(phases=st.lists(st.tuples(rates, st.integers(1, 500)), min_size=1, max_size=3), target=st.floats(0.2, 20.0))
def test_calibrated_noise_never_exceeds_the_target(name: str, phases, target: float) -> None:
    accountant = accountant_named(name)
    # A single rare step cannot spend a large ε whatever the noise; those are refused, and tested elsewhere.
    assume(accountant.epsilon([(step(q, 0.05), steps) for q, steps in phases], DELTA) > target)
    noise = noise_multiplier_for(target_epsilon=target, target_delta=DELTA, phases=phases, accountant=accountant)
    spent = accountant.epsilon([(step(q, noise), steps) for q, steps in phases], DELTA)
    assert target * (1 - 1e-5) <= spent <= target


@BOTH
@settings(max_examples=25)
@given(history=sampled_phases, noise=noises, steps=few_steps, more=st.floats(0.1, 5.0))
def test_calibrated_rates_and_steps_never_exceed_the_target(name: str, history, noise, steps: int, more) -> None:
    accountant = accountant_named(name)
    before = history_of(history)
    target = accountant.epsilon(before, DELTA) + more
    # Little noise rules out the high Rényi orders that a tiny ε needs, however rare the step: rightly refused.
    assume(accountant.epsilon([*before, (step(1e-12, noise), steps)], DELTA) <= target)
    rate = sampling_probability_for(
        target_epsilon=target,
        target_delta=DELTA,
        noise_multiplier=noise,
        steps=steps,
        history=before,
        accountant=accountant,
    )
    spent = accountant.epsilon([*before, (step(rate, noise), steps)], DELTA)
    assert spent <= target
    assert rate == 1.0 or spent >= target * (1 - 1e-5)
    if name == "rdp":
        fitting = steps_for(
            target_epsilon=target,
            target_delta=DELTA,
            mechanism=step(rate, noise),
            history=before,
            accountant=accountant,
        )
        assert fitting >= steps


@given(phases=sampled_phases)
def test_pld_is_never_above_rdp(phases) -> None:
    history = history_of(phases)
    rdp = RdpAccountant().epsilon(history, DELTA)
    # The grid of 1e-4 costs a little where losses are of its own size.
    assert PldAccountant().epsilon(history, DELTA) <= rdp * (1 + 1e-6) + 2e-3


@BOTH
@given(history=any_history)
def test_epsilon_and_delta_are_inverse(name: str, history) -> None:
    accountant = accountant_named(name)
    spent = accountant.epsilon(history, DELTA)
    assume(0 < spent < 300)
    assert accountant.delta(history, spent) == pytest.approx(DELTA, rel=1e-4)
    assert accountant.delta(history, spent + 0.01) <= DELTA


@given(mechanism=any_mechanism)
def test_json_round_trips(mechanism: Mechanism) -> None:
    assert mechanism_from_json(json.loads(json.dumps(mechanism.to_json()))) == mechanism


@given(history=any_history)
def test_renyi_curves_rise_with_the_order(history) -> None:
    curve = renyi_curve(history)
    assert all(later >= earlier * (1 - 1e-9) for earlier, later in pairwise(curve))


@settings(max_examples=20)
@given(
    noise=st.floats(0.8, 5.0),
    low=st.floats(0.01, 0.3),
    size=st.floats(0.05, 2.0),
    steps=st.integers(1, 50),
)
def test_following_branches_never_costs_more(noise: float, low: float, size: float, steps: int) -> None:
    high = min(low * math.exp(size), 1 - math.exp(-size) * (1 - low))
    choice = BernoulliSelection(probability_high=high, probability_low=low)
    training = tuple(((step(rate, noise), steps),) for rate in (0.1, 0.2, 0.3))
    selection = Released(choice=choice, threshold=Exponential(epsilon=0.05))
    campaign = CampaignHistory(training=training, selections=(selection, selection))
    additive = campaign_curve(campaign, follow_branches=False)
    assert (campaign_curve(campaign) <= additive * (1 + 1e-12)).all()
    # A campaign costs at least what its first group's training costs.
    alone = RdpAccountant().epsilon(training[0], DELTA)
    assert campaign_epsilon(campaign, delta=DELTA, accounting="branch", accountant=RdpAccountant()) >= alone
