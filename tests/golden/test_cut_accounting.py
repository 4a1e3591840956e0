"""Campaigns with cuts by accountants that are not ours: dp-accounting, mpmath, and slow direct integrals.

dp-accounting's own event for the exponential mechanism is not used: it ignores repetition counts. The envelope of all
mechanisms of bounded range is handed to it as a curve of δ instead (docs/maths/cut.md).
"""

import json
import math
import warnings
from functools import cache
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from histories import step

import dpal
from dpal.privacy.accountants import PldAccountant, RdpAccountant
from dpal.privacy.campaign_accounting import campaign_delta, campaign_epsilon
from dpal.privacy.campaign_history import CampaignHistory, Released
from dpal.privacy.campaign_profile import CampaignProfile
from dpal.privacy.mechanisms import Exponential

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pld = pytest.importorskip("dp_accounting.pld", reason="needs dp-accounting (pip install dpal[peers])")
    from dp_accounting.pld import pld_pmf

# (sampling probability, noise multiplier, steps) of each group, oldest first, and the ε of each cut.
ONE_CUT = [
    (((0.001, 2.0, 10), (0.05, 2.0, 300)), (0.2,)),
    (((0.001, 2.0, 10), (0.2, 3.0, 200)), (1.0,)),
    (((0.001, 2.0, 10), (1.0, 6.0, 20)), (3.0,)),
]
MORE_CUTS = [
    (((0.02, 2.0, 300), (0.05, 2.0, 100), (0.2, 2.0, 30)), (0.3, 0.6)),
    (((0.001, 2.0, 1), (0.5, 3.0, 9), (0.001, 2.0, 1)), (0.4, 2.0)),
    (((0.05, 1.5, 50), (0.04, 1.5, 50), (0.1, 1.5, 10), (0.5, 1.5, 1)), (0.1, 0.3, 1.0)),
]
DELTA = 1e-5
INTERVAL = 1e-4


def history(groups, cuts) -> CampaignHistory:
    return CampaignHistory(
        training=tuple(((step(rate, noise), steps),) for rate, noise, steps in groups),
        selections=tuple(Released(choice=None, threshold=Exponential(epsilon=size)) for size in cuts),
    )


def envelope(size: float, at):
    """The largest δ of any mechanism of bounded range (arXiv:1909.13830)."""
    inside = np.clip(at, -size, size)
    return np.where(at < -size, -np.expm1(np.minimum(at, 0.0)), np.expm1((inside - size) / 2) ** 2 / -math.expm1(-size))


@cache
def trained(rate: float, noise: float, steps: int):
    return pld.privacy_loss_distribution.from_gaussian_mechanism(
        noise, sampling_prob=rate, value_discretization_interval=INTERVAL
    ).self_compose(steps)


def cut_pld(size: float):
    ends = np.arange(-math.ceil(size / INTERVAL), math.ceil(size / INTERVAL) + 1)
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots(INTERVAL, ends, envelope(size, ends * INTERVAL))
    # With P and Q exchanged the envelope is the same, so both directions have this distribution.
    return pld.privacy_loss_distribution.PrivacyLossDistribution(pmf)


@pytest.mark.parametrize(("groups", "cuts"), ONE_CUT)
def test_one_cut_equals_dp_accounting(groups, cuts) -> None:
    # Everyone who meets the cut is worst off joining, so a plain composition of cut and training is the truth.
    expected = trained(*groups[1]).compose(cut_pld(cuts[0])).get_epsilon_for_delta(DELTA)
    spent = campaign_epsilon(history(groups, cuts), delta=DELTA, accounting="branch", accountant=PldAccountant())
    assert expected * (1 - 1e-6) <= spent <= expected * (1 + 1e-3)


def profile_of(composed, direction: str):
    pmf = getattr(composed, direction)
    return lambda asked: np.array([pmf.get_delta_for_epsilon(float(value)) for value in asked])


def direct_delta(profiles, cuts, at: float) -> float:
    """E over the first cut's loss of the worse of joining and going on, by Simpson's rule on the loss's density.

    Tabulated densely for what follows: the inner curve is wanted at a thousand places, and lies on straight chords.
    """

    def after(level: int, asked):
        if level == len(cuts):
            return np.maximum(0.0, -np.expm1(np.minimum(asked, 1.0)))
        size = cuts[level]
        losses = np.linspace(-size, size, 2001)
        weights = np.ones(2001)
        weights[1:-1:2], weights[2:-1:2] = 4, 2
        weights *= (losses[1] - losses[0]) / 3 * np.exp((losses - size) / 2) / (2 * -math.expm1(-size))
        nodes = np.linspace(asked.min() - size, asked.max() + size, 901)
        worse = np.maximum(profiles[level + 1](nodes), after(level + 1, nodes))
        return np.array([weights @ np.interp(value - losses, nodes, worse) for value in asked])

    return max(float(profiles[0](np.array([at]))[0]), float(after(0, np.array([at]))[0]))


@pytest.mark.parametrize(("groups", "cuts"), MORE_CUTS)
def test_several_cuts_equal_a_direct_integral_over_dp_accounting(groups, cuts) -> None:
    campaign = history(groups, cuts)
    for at in (0.5, 2.5):
        truth = 0.0
        for direction in ("_pmf_remove", "_pmf_add"):
            profiles = [profile_of(trained(*group), direction) for group in groups]
            truth = max(truth, direct_delta(profiles, cuts, at))
        ours = campaign_delta(campaign, epsilon=at, accounting="branch", accountant=PldAccountant())
        # Ours rounds losses up, and what dp-accounting integrates is rounded to a grid too.
        assert truth * (1 - 1e-4) <= ours <= truth * (1 + 5e-3)


def test_the_maximum_belongs_inside() -> None:
    # A planted bug: the worst group after composing each by itself. It understates where a record may join or go on.
    rate_of_nobody = (0.001, 2.0, 1)
    for groups, cuts, at in [
        ((rate_of_nobody, (0.1, 0.7, 1), rate_of_nobody), (2.0, 0.5), 2.0),
        ((rate_of_nobody, (1.0, 1.0, 1), rate_of_nobody), (1.0, 2.0), 2.0),
    ]:
        right = CampaignProfile.of(history(groups, cuts))
        joining = CampaignProfile.of(history(groups[:2], cuts[:1]))
        going_on = CampaignProfile.of(history((rate_of_nobody,) * 3, cuts))
        assert max(joining.delta(at), going_on.delta(at)) < 0.87 * right.delta(at)


@pytest.mark.parametrize("size", [0.01, 0.3, 2.0, 7.0])
def test_the_envelope_in_thirty_digits(size: float) -> None:
    # The pair whose curve is the envelope: its loss has the density exp((x − ε)/2) / (2(1 − exp(−ε))) on [−ε, ε].
    with mpmath.workdps(30):
        scale = 2 * (1 - mpmath.exp(-size))
        density = lambda x: mpmath.exp((x - size) / 2) / scale  # noqa: E731
        assert mpmath.almosteq(mpmath.quad(density, [-size, size]), 1, rel_eps=1e-20)
        assert mpmath.almosteq(mpmath.quad(lambda x: density(x) * mpmath.exp(-x), [-size, size]), 1, rel_eps=1e-20)
        profile = CampaignProfile.of(history(((1.0, 1e6, 1), (1.0, 1e6, 1)), (size,)))
        for share in (-0.9, -0.3, 0.0, 0.4, 0.8):
            at = share * size
            exact = mpmath.quad(lambda x, at=at: density(x) * (1 - mpmath.exp(at - x)), [at, size])
            assert mpmath.almosteq(exact, float(envelope(size, np.array(at))), rel_eps=1e-12)
            # Nobody trains to speak of, so the campaign is the cut alone, here in 128 steps of loss.
            assert float(exact) - 1e-9 <= profile.delta(at) <= float(exact) * 1.002 + 2e-6


def follows(at, points, heights):
    """A mixture of hockey sticks."""
    return sum(height * np.maximum(0.0, 1 - np.exp(at) / point) for height, point in zip(heights, points, strict=True))


def test_no_mechanism_of_bounded_range_is_worse_than_the_envelope() -> None:
    # What may follow is any curve that is convex in exp(ε): its expectation is largest over the envelope's loss.
    rng = np.random.default_rng(11)
    size = 1.3
    losses = np.linspace(-size, size, 20_001)
    density = np.exp((losses - size) / 2) / (2 * -math.expm1(-size))
    closest = 0.0
    for _ in range(300):
        count = int(rng.integers(2, 6))
        second = rng.dirichlet(np.ones(count))
        tilt = rng.uniform(0, size, count) if rng.random() < 0.5 else size * rng.integers(0, 2, count)
        first = second * np.exp(tilt)
        first /= first.sum()
        points, heights = np.exp(rng.normal(0, 1, 3)), rng.dirichlet(np.ones(3))
        at = rng.normal()
        for p, q in ((first, second), (second, first)):
            true = float(p @ follows(at - np.log(p / q), points, heights))
            bound = float(np.trapezoid(density * follows(at - losses, points, heights), losses))
            assert true <= bound + 1e-6
            closest = max(closest, true / bound if bound > 1e-3 else 0.0)
    assert closest > 0.99


def whole_order_moment(rate: float, noise: float, steps: int, order: int):
    """Log E[(P/Q)^order] of a Poisson-sampled Gaussian, the larger direction (arXiv:1908.10530, whole orders)."""
    terms = (
        mpmath.binomial(order, k) * (1 - rate) ** (order - k) * rate**k * mpmath.exp(k * (k - 1) / (2 * noise**2))
        for k in range(order + 1)
    )
    return steps * mpmath.log(mpmath.fsum(terms))


@pytest.mark.parametrize(("groups", "cuts"), [*ONE_CUT, *MORE_CUTS])
def test_the_renyi_form_recomputed(groups, cuts) -> None:
    orders = (2, 3, 4, 5, 6, 8, 11, 16, 24, 32, 64)
    with mpmath.workdps(30):
        candidates = []
        for order in orders:
            moments = [whole_order_moment(*map(mpmath.mpf, group[:2]), group[2], order) for group in groups]
            following = mpmath.mpf(0)
            for size, moment in zip(reversed(cuts), reversed(moments[1:]), strict=True):
                curve = min(mpmath.mpf(size), order * mpmath.mpf(size) ** 2 / 8)
                following = (order - 1) * curve + max(moment, following)
            curve = max(moments[0], following) / (order - 1)
            candidates.append(curve + mpmath.log1p(mpmath.mpf(-1) / order) - mpmath.log(DELTA * order) / (order - 1))
        expected = float(max(0, min(candidates)))
    accountant = RdpAccountant(orders=tuple(float(order) for order in orders))
    campaign = history(groups, cuts)
    for accounting in ("branch", "renyi"):
        spent = campaign_epsilon(campaign, delta=DELTA, accounting=accounting, accountant=accountant)
        assert spent == pytest.approx(expected, rel=1e-9)
    tight = campaign_epsilon(campaign, delta=DELTA, accounting="branch", accountant=PldAccountant())
    assert tight <= expected


def test_a_certified_plan_recomputed_from_its_document() -> None:
    plan = dpal.plan(
        target_epsilon=4, pool_size=6000, initial_size=1000, query_sizes=(600, 400), batch_size=300, epochs=2
    )
    document = json.loads(json.dumps(plan.to_json()))
    cuts = [selection["cut_epsilon"] for selection in document["selections"]]
    assert [selection["mechanism"] for selection in document["selections"]] == ["cut", "cut"]
    assert all(earlier["steps"] > 0 for earlier, _ in pairwise(document["phases"]))
    composed = []
    for group in range(3):
        parts = [
            trained(phase["sampling_probabilities"][group], phase["noise_multiplier"], phase["steps"])
            for phase in document["phases"]
            if group < len(phase["sampling_probabilities"])
        ]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.compose(part)
        composed.append(whole)
    truth = 0.0
    for direction in ("_pmf_remove", "_pmf_add"):
        profiles = [profile_of(group, direction) for group in composed]
        truth = max(truth, direct_delta(profiles, cuts, plan.epsilon))
    assert 0.97 * plan.setting.target_delta <= truth <= plan.setting.target_delta * (1 + 1e-4)
