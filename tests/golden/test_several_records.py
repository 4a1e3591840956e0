"""Several records of one person: integrals, dp-accounting's mixtures of Gaussians, and enumerated campaigns.

docs/maths/group-privacy.md has the proof. dp-accounting builds and composes everything here by its own code: mixtures
with the weights of a Poisson binomial, the envelope of a cut as a curve of δ, and bits as pairs of probabilities.
"""

import math
import warnings
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from random import Random

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr
from toy_campaigns import BLANK, EPSILONS, RECORD, ToyCampaign, cut, drawn_scores, exact_deltas

from dpal.privacy.accountants import PldAccountant
from dpal.privacy.campaign_accounting import campaign_delta, campaign_epsilon
from dpal.privacy.campaign_history import Released
from dpal.privacy.group_privacy import group_delta
from dpal.privacy.losses import Direction
from dpal.privacy.mechanisms import BernoulliSelection, Exponential, Gaussian, Mechanism, PoissonSampledGaussian
from dpal.privacy.mixture_of_gaussians import MixtureOfGaussians
from dpal.privacy.pld import privacy_profile
from dpal.privacy.several_records import (
    PhasedCampaign,
    TrainingPhase,
    direct_delta,
    several_records_epsilon,
)

pytestmark = pytest.mark.exhaustive

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pld = pytest.importorskip("dp_accounting.pld", reason="needs dp-accounting (pip install dpal[peers])")
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as distributions

DELTA = 1e-5
ACCOUNTANT = PldAccountant()


def weights_of(rates) -> list[float]:
    """The probabilities that 0, 1, … records are drawn, by multiplying polynomials."""
    total = np.ones(1)
    for rate, records in rates:
        for _ in range(records):
            total = np.convolve(total, [1 - rate, rate])
    return total.tolist()


# One step.


def exact_delta(rates, noise: float, epsilon: float, direction: Direction) -> mpmath.mpf:
    """The hockey stick of a step: the likelihood ratio rises with x, so it is a difference of tails at one x."""
    with mpmath.workdps(30):
        weights = [mpmath.mpf(weight) for weight in weights_of(rates)]

        def log_ratio(x):
            terms = (w * mpmath.exp((j * x - mpmath.mpf(j * j) / 2) / noise**2) for j, w in enumerate(weights))
            return mpmath.log(mpmath.fsum(terms))

        wanted = epsilon if direction is Direction.RECORD_FIRST else -epsilon
        low, high = mpmath.mpf(-60 * noise), mpmath.mpf(60 * noise + 10 * len(weights))
        if log_ratio(low) >= wanted:
            return max(mpmath.mpf(0), 1 - mpmath.exp(epsilon)) if direction is Direction.RECORD_FIRST else mpmath.mpf(0)
        for _ in range(110):
            middle = (low + high) / 2
            low, high = (middle, high) if log_ratio(middle) < wanted else (low, middle)
        with_record = mpmath.fsum(w * mpmath.ncdf((j - low) / noise) for j, w in enumerate(weights))
        with_blanks = mpmath.ncdf(-low / noise)
        if direction is Direction.RECORD_FIRST:
            return with_record - mpmath.exp(epsilon) * with_blanks
        return (1 - with_blanks) - mpmath.exp(epsilon) * (1 - with_record)


STEPS = [
    (((0.1, 5),), 1.0),
    (((0.01, 2),), 0.7),
    (((0.3, 2), (0.05, 3)), 2.0),
    (((0.2, 30),), 4.0),
    (((0.001, 30), (0.6, 1)), 1.5),
]


@pytest.mark.parametrize(("rates", "noise"), STEPS)
def test_one_step_equals_its_integral_and_is_never_below(rates, noise: float) -> None:
    records = sum(number for _, number in rates)
    step = MixtureOfGaussians(rates=rates, noise_multiplier=noise)
    for direction, epsilon in product(Direction, (-0.5, 0.0, 0.3, 1.0, 3.0)):
        exact = float(exact_delta(rates, noise, epsilon, direction))
        ours = float(privacy_profile([(step, 1)], direction, records * 1e-4).delta(epsilon)[0])
        assert exact - 1e-13 <= ours <= exact + 1e-5 * records, (direction, epsilon)


def test_the_tail_formula_is_an_integral() -> None:
    rates, noise, epsilon = ((0.3, 2), (0.05, 3)), 2.0, 0.3
    weights = weights_of(rates)

    def difference(x):
        return max(
            mpmath.mpf(0),
            mpmath.fsum(w * mpmath.npdf(x, j, noise) for j, w in enumerate(weights))
            - mpmath.exp(epsilon) * mpmath.npdf(x, 0, noise),
        )

    integral = mpmath.quad(difference, mpmath.linspace(-20, 30, 101))
    assert float(integral) == pytest.approx(float(exact_delta(rates, noise, epsilon, Direction.RECORD_FIRST)), rel=1e-6)


def test_records_that_are_drawn_separately_are_not_one_with_a_longer_gradient() -> None:
    """The planted bug (q, σ / k), and another one: k steps of one record."""
    truth = float(exact_delta(((0.1, 5),), 1.0, 0.0, Direction.RECORD_FIRST))
    assert truth == pytest.approx(0.178279, abs=1e-6)

    def claimed(step: Mechanism, times: int) -> float:
        return float(privacy_profile([(step, times)], Direction.RECORD_FIRST).delta(0.0)[0])

    ours = claimed(MixtureOfGaussians(rates=((0.1, 5),), noise_multiplier=1.0), 1)
    assert truth <= ours < truth + 1e-6
    wrong = claimed(PoissonSampledGaussian(sampling_probability=0.1, noise_multiplier=0.2), 1)
    assert wrong == pytest.approx(0.0988, abs=1e-3)
    assert wrong < 0.6 * truth
    assert claimed(PoissonSampledGaussian(sampling_probability=0.1, noise_multiplier=1.0), 5) < 0.9 * truth


# Kahane's inequality: gradients in any direction, at any lower rates.


def vector_deltas(gradients: np.ndarray, rates: np.ndarray, noise: float, epsilon: float) -> tuple[float, float]:
    """Both hockey sticks of a mixture in two dimensions, by the trapezoidal rule on a fine grid."""
    reach = 8 * noise + len(gradients)
    line = np.linspace(-reach, reach, 701)
    points = np.stack(np.meshgrid(line, line), axis=-1)
    first = np.zeros(points.shape[:2])
    density = (line[1] - line[0]) ** 2 / (2 * math.pi * noise**2)
    for drawn in product((0, 1), repeat=len(gradients)):
        weight = math.prod(rate if is_drawn else 1 - rate for rate, is_drawn in zip(rates, drawn, strict=True))
        centre = np.asarray(drawn) @ gradients
        first += weight * density * np.exp(-((points - centre) ** 2).sum(axis=-1) / (2 * noise**2))
    second = density * np.exp(-(points**2).sum(axis=-1) / (2 * noise**2))
    grown = math.exp(epsilon)
    return float(np.maximum(0, first - grown * second).sum()), float(np.maximum(0, second - grown * first).sum())


@pytest.mark.parametrize("seed", range(6))
def test_no_directions_of_gradients_are_worse_than_equal_ones(seed: int) -> None:
    draw = np.random.default_rng(seed)
    records, noise, rate = int(draw.integers(2, 5)), float(draw.uniform(0.6, 2.0)), float(draw.uniform(0.05, 0.9))
    gradients = draw.normal(size=(records, 2))
    if seed % 2:
        gradients /= np.maximum(1, np.linalg.norm(gradients, axis=1))[:, None]
    else:
        gradients /= np.linalg.norm(gradients, axis=1)[:, None]
    lower = rate * draw.uniform(0.3, 1.0, size=records) if seed % 3 else np.full(records, rate)
    for epsilon in (-0.7, 0.0, 0.4, 1.5):
        for value, direction in zip(vector_deltas(gradients, lower, noise, epsilon), Direction, strict=True):
            assert value <= float(exact_delta(((rate, records),), noise, epsilon, direction)) + 1e-6


def test_equal_gradients_reach_the_bound_and_longer_ones_exceed_it() -> None:
    equal = np.tile([1.0, 0.0], (3, 1))
    truth = [float(exact_delta(((0.4, 3),), 1.2, 0.4, direction)) for direction in Direction]
    reached = vector_deltas(equal, np.full(3, 0.4), 1.2, 0.4)
    assert reached == pytest.approx(truth, abs=5e-5)
    # A twin that must fail: gradients a tenth too long.
    longer = vector_deltas(1.1 * equal, np.full(3, 0.4), 1.2, 0.4)
    assert all(value > bound + 1e-3 for value, bound in zip(longer, truth, strict=True))


# Whole campaigns, by dp-accounting.


def phase(noise: float, steps: int, *rates: float) -> TrainingPhase:
    return TrainingPhase(sampling_probabilities=rates, noise_multiplier=noise, steps=steps)


def cut_of(epsilon: float) -> Released:
    return Released(choice=None, threshold=Exponential(epsilon=epsilon))


CASES = {
    "one cut": PhasedCampaign(
        phases=(phase(3.0, 20, 0.2), phase(3.0, 150, 0.05, 0.08)),
        selections=(cut_of(0.05),),
    ),
    "phases and groups": PhasedCampaign(
        phases=(phase(4.0, 30, 0.1), phase(4.0, 40, 0.04, 0.12), phase(3.5, 60, 0.03, 0.05, 0.1)),
        selections=(cut_of(0.1), cut_of(0.3)),
        mean=Gaussian(noise_multiplier=20.0),
    ),
    "threshold sampling": PhasedCampaign(
        phases=(phase(3.0, 60, 0.03), phase(3.0, 80, 0.02, 0.05)),
        selections=(
            Released(
                choice=BernoulliSelection(probability_high=0.3, probability_low=0.15),
                threshold=Exponential(epsilon=0.05),
            ),
        ),
    ),
}


def pmf_of(curve, size: float, interval: float):
    ends = np.arange(-math.ceil(size / interval), math.ceil(size / interval) + 1)
    return pld_pmf.create_pmf_pessimistic_connect_dots(interval, ends, curve(ends * interval))


def envelope_pld(size: float, interval: float):
    def curve(at):
        inside = np.expm1((np.clip(at, -size, size) - size) / 2) ** 2 / -math.expm1(-size)
        return np.where(at < -size, -np.expm1(np.minimum(at, 0.0)), inside)

    return distributions.PrivacyLossDistribution(pmf_of(curve, size, interval))


def bit_pld(bit: BernoulliSelection, interval: float):
    high, low = bit.probability_high, bit.probability_low

    def curve(first: float, second: float):
        return lambda at: (
            np.maximum(0, first - np.exp(at) * second) + np.maximum(0, 1 - first - np.exp(at) * (1 - second))
        )

    size = math.log(high / low)
    return distributions.PrivacyLossDistribution(
        pmf_of(curve(high, low), size, interval), pmf_of(curve(low, high), size, interval)
    )


def mixture_pld(rates, noise: float, interval: float):
    weights = weights_of(rates)
    return distributions.from_mixture_gaussian_mechanism(
        noise, list(range(len(weights))), weights, value_discretization_interval=interval
    )


@cache
def their_deltas(name: str, records: int, initial: int, epsilons: tuple[float, ...]) -> tuple[float, ...]:
    """δ when so many of the records are in the initial set and all others are worst off."""
    campaign, interval = CASES[name], 2e-4 * records
    parts = []
    for each in campaign.phases:
        first, *later = each.sampling_probabilities
        rates = [(rate, number) for rate, number in ((first, initial), (max(later, default=0), records - initial))]
        rates = [(rate, number) for rate, number in rates if rate > 0 and number > 0]
        if rates:
            parts.append(mixture_pld(rates, each.noise_multiplier, interval).self_compose(each.steps))
    if campaign.mean is not None:
        parts.append(
            distributions.from_gaussian_mechanism(
                campaign.mean.noise_multiplier / records, value_discretization_interval=interval
            )
        )
    left = records - initial
    for selection in campaign.selections if left else ():
        parts.append(envelope_pld(left * selection.threshold.epsilon, interval))
        if selection.choice is not None:
            parts.append(bit_pld(selection.choice, interval).self_compose(left))
    composed = parts[0]
    for part in parts[1:]:
        composed = composed.compose(part)
    return tuple(float(value) for value in composed.get_delta_for_epsilon(list(epsilons)))


@pytest.mark.parametrize("records", [1, 2, 5, 30])
@pytest.mark.parametrize("name", CASES)
def test_the_direct_account_equals_dp_accounting(name: str, records: int) -> None:
    epsilons = (0.5 * records, 2.0 * records, 4.0 * records)
    # All cases up to five records, and for thirty the two ends, which the truth is at least.
    initial = range(records + 1) if records <= 5 else (0, records)
    theirs = np.max([their_deltas(name, records, number, epsilons) for number in initial], axis=0)
    ours = [direct_delta(CASES[name], records=records, epsilon=epsilon) for epsilon in epsilons]
    for expected, value in zip(theirs, ours, strict=True):
        # Both are rounded upwards, on other grids.
        assert value >= expected * (1 - 2e-3) - 1e-10
        if records <= 5:
            assert value <= expected * (1 + 2e-3) + 1e-9


@pytest.mark.parametrize("name", CASES)
def test_for_one_record_both_accounts_agree_and_more_records_cost_more(name: str) -> None:
    campaign = CASES[name]
    single = campaign.as_one_record()
    certified = campaign_epsilon(single, delta=DELTA, accounting="branch", accountant=ACCOUNTANT)
    spent = [
        several_records_epsilon(campaign, records=k, delta=DELTA, accounting="branch", accountant=ACCOUNTANT).epsilon
        for k in (1, 2, 5, 30)
    ]
    assert spent[0] == certified
    assert all(one < more for one, more in pairwise(spent))
    # A record in the initial set, or the training of a group alone, is never above the direct account of one record.
    for at in (0.5, 2.0):
        direct = direct_delta(campaign, records=1, epsilon=at)
        trained = max(ACCOUNTANT.delta(history, at) for history in single.training)
        assert direct >= trained * (1 - 1e-9)
        if len(campaign.selections) == 1 and campaign.selections[0].choice is None:
            certified_delta = campaign_delta(single, epsilon=at, accounting="branch", accountant=ACCOUNTANT)
            assert direct == pytest.approx(certified_delta, rel=1e-3)


def test_planted_bugs_of_accounting_are_below_the_truth() -> None:
    campaign, records = CASES["phases and groups"], 5
    truth = max(their_deltas("phases and groups", records, number, (3.0,))[0] for number in range(records + 1))
    # The rate of the initial set alone.
    first_only = replace(
        campaign,
        phases=tuple(replace(each, sampling_probabilities=each.sampling_probabilities[:1]) for each in campaign.phases),
    )
    assert direct_delta(first_only, records=records, epsilon=3.0) < 0.9 * truth
    # Each cut charged once.
    loud = replace(CASES["one cut"], selections=(cut_of(1.0),))
    once = replace(loud, selections=(cut_of(1.0 / records),))
    assert direct_delta(once, records=records, epsilon=3.0) < 0.9 * direct_delta(loud, records=records, epsilon=3.0)


# Whole campaigns, enumerated.


class BinnedCampaign(ToyCampaign):
    """A training release is the bin of the members' sum plus Gaussian noise: what is seen of a real release.

    `noises` has only lengths here; every phase has the same noise. A bin depends on the real release alone, so the
    exact δ of these campaigns is at most that of the real ones.
    """

    deviation = 1.0
    edges = np.array([-np.inf, -0.5, 0.7, 1.5, 2.6, np.inf])

    def _trained(self, states, phase: int, world: str):
        found: dict = {}
        for (history, groups), before in states.items():
            sums = np.ones(1)
            for group, rate in zip(groups, self.rates[phase], strict=True):
                for record in group:
                    if not self._is_blank(record, world) and self.contributions[record]:
                        sums = np.convolve(sums, [1 - rate, rate])
            inner = ndtr((self.edges[:, None] - np.arange(len(sums))) / self.deviation)
            for outcome, probability in enumerate((np.diff(inner, axis=0) @ sums).tolist()):
                key = ((*history, outcome), groups)
                found[key] = found.get(key, 0.0) + before * probability
        return found

    def phased(self) -> PhasedCampaign:
        return PhasedCampaign(
            phases=tuple(phase(self.deviation, 1, *rates) for rates in self.rates),
            selections=tuple(selection.released for selection in self.selections),
        )


def binned_campaign(seed: int) -> BinnedCampaign:
    draw = Random(f"several {seed}")  # noqa: S311
    records = 4
    return BinnedCampaign(
        selections=tuple(cut(draw.choice((0.2, 1.0, 2.0)), draw.randint(1, 3), grid_steps=2) for _ in range(2)),
        noises=((1.0,),) * 3,
        rates=tuple(tuple(draw.choice((0.2, 0.6, 1.0)) for _ in range(number + 1)) for number in range(3)),
        score=drawn_scores(f"several {seed}", 2),
        records=records,
        initial=frozenset({0, 2} if seed % 4 == 0 else {2}),
        contributions=(1, 1, draw.randint(0, 1), draw.randint(0, 1)),
        person=frozenset({0, 1}),
    )


@pytest.mark.parametrize("seed", range(10))
def test_no_campaign_tells_more_about_two_records_of_one_person(seed: int) -> None:
    campaign = binned_campaign(seed)
    phased = campaign.phased()
    for at, exact in zip(EPSILONS[::4], exact_deltas(campaign, BLANK, EPSILONS[::4]), strict=True):
        assert exact <= direct_delta(phased, records=2, epsilon=at) + 1e-9, at


def test_a_cut_tells_about_two_records_at_once() -> None:
    """Cuts alone: two records at the top, with two below them. A cut that is charged once is too small."""
    campaign = BinnedCampaign(
        selections=(cut(2.0, 2, grid_steps=2), cut(0.1, 2, grid_steps=2)),
        noises=((1.0,),) * 3,
        rates=((0.0,), (0.0, 0.0), (0.0, 0.0, 0.0)),
        score=lambda record, history: 1.0 if record < 2 else 0.5,
        records=5,
        initial=frozenset({2}),
        person=frozenset({0, 1}),
    )
    asked = (0.5, 1.0, 1.5)
    exact = exact_deltas(campaign, BLANK, asked)
    assert all(
        leak <= direct_delta(campaign.phased(), records=2, epsilon=at) for at, leak in zip(asked, exact, strict=True)
    )
    wrong = [direct_delta(campaign.phased(), records=1, epsilon=at) for at in asked]
    assert max(leak - claim for leak, claim in zip(exact, wrong, strict=True)) > 0.01


@pytest.mark.parametrize("seed", range(6))
def test_the_generic_bound_covers_enumerated_campaigns(seed: int) -> None:
    draw = Random(f"generic {seed}")  # noqa: S311
    ratio = draw.choice((0.3, 0.6))
    noise = tuple(weight / (1 + 2 * ratio) for weight in (1, ratio, ratio))
    campaign = ToyCampaign(
        selections=tuple(cut(draw.choice((0.2, 1.0)), draw.randint(1, 3), grid_steps=2) for _ in range(2)),
        noises=(noise,) * 3,
        rates=tuple(tuple(draw.choice((0.2, 0.6)) for _ in range(number + 1)) for number in range(3)),
        score=drawn_scores(f"generic {seed}", 2),
        records=4,
        contributions=(1, 1, 1, 1),
        person=frozenset({0, 1}),
        initial=frozenset({2}),
    )
    one = replace(campaign, person=frozenset({0})).certified()
    asked = tuple(at for at in EPSILONS if at > 0)
    assert campaign.transcripts(RECORD) != campaign.transcripts(BLANK)
    for at, exact in zip(asked, exact_deltas(campaign, BLANK, asked), strict=True):
        assert exact <= group_delta(at / 2, one.delta(at / 2), 2) + 1e-9
