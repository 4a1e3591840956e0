"""Bounds on ε: exact in small cases, right as often as they say, and never wilder than the guesses allow."""

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom
from statistics_helper import FALSE_FAILURE

from dpal.audit.bounds import (
    Guesses,
    Rates,
    chance_of_so_many,
    contradicts,
    epsilon_from_rates,
    epsilon_of_one_run,
    gaussian_epsilon,
    gaussian_mu_from_rates,
    surely_at_least,
    surely_at_most,
)
from dpal.errors import InvalidArgument

RUNS = 4_000
RISK = 0.05


def guesses(right: int, present: int, wrong: int, absent: int) -> Guesses:
    return Guesses(right=right, present=present, wrong=wrong, absent=absent)


def at_least(trials: int, successes: int, rate: float) -> mpmath.mpf:
    """P(Binomial(trials, rate) ≥ successes), term by term with 50 digits."""
    with mpmath.workdps(50):
        p = mpmath.mpf(rate)
        terms = (mpmath.binomial(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(successes, trials + 1))
        return mpmath.fsum(terms)


@pytest.mark.parametrize(("successes", "trials"), [(1, 1), (1, 7), (5, 7), (7, 7), (40, 100)])
@pytest.mark.parametrize("risk", [0.05, 1e-6])
def test_rates_are_exact_ends_of_binomial_sums(successes: int, trials: int, risk: float) -> None:
    low = surely_at_least(successes, trials, risk)
    assert float(at_least(trials, successes, low)) == pytest.approx(risk, rel=1e-9)
    if successes < trials:
        high = surely_at_most(successes, trials, risk)
        assert 1 - float(at_least(trials, successes + 1, high)) == pytest.approx(risk, rel=1e-6)


def test_nothing_seen_and_everything_seen_have_ends_without_sums() -> None:
    assert surely_at_least(0, 10, RISK) == 0 and surely_at_most(10, 10, RISK) == 1
    # (1 − p)^n = risk, and p^n = risk.
    assert surely_at_most(0, 10, RISK) == pytest.approx(1 - RISK**0.1)
    assert surely_at_least(10, 10, RISK) == pytest.approx(RISK**0.1)


def test_four_rates_are_two_events_that_share_the_risk() -> None:
    rates = Rates.of(guesses(60, 100, 3, 90), risk=RISK)
    assert rates.true_positive == surely_at_least(60, 100, RISK / 2)
    assert rates.false_positive == surely_at_most(3, 90, RISK / 2)
    assert rates.true_negative == pytest.approx(surely_at_least(87, 90, RISK / 2))
    assert rates.false_negative == pytest.approx(surely_at_most(40, 100, RISK / 2))


@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01])
def test_epsilon_is_the_larger_of_both_directions(delta: float) -> None:
    for counts in ((60, 100, 3, 90), (97, 100, 60, 90)):
        rates = Rates.of(guesses(*counts), risk=RISK)
        forward = math.log((rates.true_positive - delta) / rates.false_positive)
        backward = math.log((rates.true_negative - delta) / rates.false_negative)
        assert epsilon_from_rates(guesses(*counts), delta=delta, risk=RISK) == pytest.approx(max(forward, backward))


@pytest.mark.parametrize("counts", [(0, 50, 0, 50), (50, 50, 50, 50), (25, 50, 25, 50), (0, 50, 50, 50)])
def test_guesses_that_know_nothing_prove_nothing(counts: tuple[int, int, int, int]) -> None:
    assert epsilon_from_rates(guesses(*counts), delta=0, risk=RISK) == 0
    assert gaussian_mu_from_rates(guesses(*counts), risk=RISK) == 0
    assert not contradicts(guesses(*counts), lambda epsilon: 0.0, (0.0, 1.0), risk=RISK)


def test_perfect_guesses_prove_as_much_as_their_number_allows() -> None:
    bounds = [epsilon_from_rates(guesses(n, n, 0, n), delta=0, risk=RISK) for n in (10, 100, 1000, 10_000)]
    assert bounds == sorted(bounds) and bounds[-1] < math.log(10_000)
    # Rates of q and 1 − q with q^n = risk / 2.
    least = (RISK / 2) ** (1 / 100)
    assert bounds[1] == pytest.approx(math.log(least / (1 - least)))
    assert contradicts(guesses(1000, 1000, 0, 1000), lambda epsilon: 1e-5, (1.0,), risk=1e-6)


def slow_one_run(correct: int, guessed: int, canaries: int, epsilon: float, delta: float) -> float:
    """Theorem 5.2 of arXiv 2305.08846, by sums with 50 digits."""
    with mpmath.workdps(50):
        accuracy = mpmath.exp(epsilon) / (1 + mpmath.exp(epsilon))

        def f(v: int) -> mpmath.mpf:
            return at_least(guessed, max(0, v), accuracy)

        growth = max([(f(correct - i) - f(correct)) / i for i in range(1, canaries + 1)])
        return float(min(mpmath.mpf(1), f(correct) + 2 * canaries * mpmath.mpf(delta) * growth))


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
@pytest.mark.parametrize(("correct", "guessed", "canaries"), [(0, 5, 9), (1, 1, 9), (9, 12, 12), (20, 20, 60)])
def test_the_chance_in_one_run_is_the_theorems(
    correct: int, guessed: int, canaries: int, epsilon: float, delta: float
) -> None:
    fast = chance_of_so_many(correct, guessed, canaries, epsilon=epsilon, delta=delta)
    assert fast == pytest.approx(slow_one_run(correct, guessed, canaries, epsilon, delta), rel=1e-9)


def test_the_bound_of_one_run_is_where_its_chance_is_the_risk() -> None:
    for correct, guessed, canaries, delta in ((60, 64, 1000, 1e-5), (300, 400, 400, 0.0), (90, 90, 5000, 1e-6)):
        bound = epsilon_of_one_run(correct, guessed, canaries, delta=delta, risk=RISK)
        assert chance_of_so_many(correct, guessed, canaries, epsilon=bound, delta=delta) == pytest.approx(RISK)
    # All right and δ = 0: q^n = risk.
    accuracy = RISK ** (1 / 50)
    bound = epsilon_of_one_run(50, 50, 50, delta=0, risk=RISK)
    assert bound == pytest.approx(math.log(accuracy / (1 - accuracy)))
    by_scipy = brentq(lambda e: float(binom.sf(69, 80, 1 / (1 + math.exp(-e)))) - RISK, 0, 10)
    assert epsilon_of_one_run(70, 80, 80, delta=0, risk=RISK) == pytest.approx(by_scipy)


def test_one_run_proves_nothing_without_guesses_or_with_half_of_them_right() -> None:
    for correct, guessed in ((0, 0), (0, 10), (5, 10), (4, 4)):
        assert epsilon_of_one_run(correct, guessed, 100, delta=0, risk=RISK) == 0
    with pytest.raises(InvalidArgument, match="correct guesses"):
        chance_of_so_many(6, 5, 9, epsilon=1, delta=0)
    with pytest.raises(InvalidArgument, match="right guesses"):
        guesses(6, 5, 0, 9)


Bound = Callable[[float, float], float]


@pytest.mark.parametrize(
    "bound",
    [
        lambda delta, risk: epsilon_from_rates(guesses(400, 1000, 20, 1000), delta=delta, risk=risk),
        lambda delta, risk: epsilon_of_one_run(180, 200, 1000, delta=delta, risk=risk),
    ],
)
def test_bounds_fall_with_delta_and_rise_with_risk(bound: Bound) -> None:
    by_delta = [bound(delta, RISK) for delta in (0.0, 1e-6, 1e-4, 1e-2)]
    assert by_delta == sorted(by_delta, reverse=True) and by_delta[0] > by_delta[-1]
    by_risk = [bound(1e-5, risk) for risk in (1e-9, 1e-6, 1e-3, 0.05)]
    assert by_risk == sorted(by_risk) and by_risk[0] < by_risk[-1]


def test_bounds_rise_with_right_guesses_and_fall_with_wrong_ones() -> None:
    for raised in (
        [epsilon_from_rates(guesses(right, 100, 5, 100), delta=1e-5, risk=RISK) for right in range(0, 101, 10)],
        [epsilon_from_rates(guesses(60, 100, wrong, 100), delta=1e-5, risk=RISK) for wrong in range(60, -1, -10)],
        [gaussian_mu_from_rates(guesses(right, 100, 5, 100), risk=RISK) for right in range(0, 101, 10)],
        [epsilon_of_one_run(right, 100, 500, delta=1e-5, risk=RISK) for right in range(50, 101, 10)],
        [chance_of_so_many(90, 100, 500, epsilon=epsilon, delta=1e-5) for epsilon in (0.0, 1.0, 2.0, 4.0)],
        [gaussian_epsilon(mu, 1e-5) for mu in (0.0, 0.1, 0.5, 1.0, 3.0)],
    ):
        assert raised == sorted(raised)


def test_the_epsilon_of_a_gaussian_is_the_known_one() -> None:
    # STYLE's golden value: ε 1 at δ 1e-5 needs noise 3.730632.
    assert gaussian_epsilon(1 / 3.730632, 1e-5) == pytest.approx(1, abs=1e-6)
    assert gaussian_epsilon(0, 1e-5) == 0 == gaussian_epsilon(0.1, 0.9)


def false_alarms(bounds: list[float], truth: float) -> int:
    return sum(bound > truth for bound in bounds)


def rarely_enough(alarms: int) -> bool:
    """Whether so many false alarms are likely enough if each has at most the stated probability."""
    return float(binom.sf(alarms - 1, RUNS, RISK)) >= FALSE_FAILURE


def rate_bounds(risk: float) -> list[float]:
    """Randomised response with ε = 1, the tightest case there is: both directions are met exactly."""
    generator, rate = np.random.default_rng(1), math.e / (1 + math.e)
    right, wrong = generator.binomial(200, rate, RUNS), generator.binomial(200, 1 - rate, RUNS)
    counted = {(int(r), int(w)) for r, w in zip(right, wrong, strict=True)}
    table = {pair: epsilon_from_rates(guesses(pair[0], 200, pair[1], 200), delta=0, risk=risk) for pair in counted}
    return [table[int(r), int(w)] for r, w in zip(right, wrong, strict=True)]


def one_run_bounds(risk: float) -> list[float]:
    """Randomised response of 200 canaries with ε = 1, in one run."""
    correct = np.random.default_rng(2).binomial(200, math.e / (1 + math.e), RUNS)
    table = {int(c): epsilon_of_one_run(int(c), 200, 200, delta=0, risk=risk) for c in np.unique(correct)}
    return [table[int(c)] for c in correct]


@pytest.mark.parametrize("bounds", [rate_bounds, one_run_bounds])
def test_false_alarms_are_as_rare_as_stated(bounds: Callable[[float], list[float]]) -> None:
    assert rarely_enough(false_alarms(bounds(RISK), 1.0))
    # The test can fail: with ten times the risk there are too many.
    assert not rarely_enough(false_alarms(bounds(10 * RISK), 1.0))


def test_gaussian_false_alarms_are_as_rare_as_stated() -> None:
    """One Gaussian with μ = 1 and a fixed threshold."""
    generator = np.random.default_rng(3)
    present, absent = ((generator.normal(mu, size=(RUNS, 100)) > 0.5).sum(axis=1) for mu in (1.0, 0.0))
    pairs = list(zip(present.tolist(), absent.tolist(), strict=True))
    mus = {pair: gaussian_mu_from_rates(guesses(pair[0], 100, pair[1], 100), risk=RISK) for pair in set(pairs)}
    assert rarely_enough(false_alarms([mus[pair] for pair in pairs], 1.0))
    assert max(mus.values()) > 0.5


def test_one_run_holds_where_delta_shows_some_canaries_together() -> None:
    """The theorem's worst case: with a probability of m · δ / i, i canaries are shown at once."""
    canaries, delta, shown = 100, 1e-3, 7
    generator = np.random.default_rng(4)
    # Guesses on ten canaries alone, so that seven that are known change everything.
    correct = generator.binomial(10 - shown, 0.5, RUNS) + np.where(
        generator.random(RUNS) < canaries * delta / shown, shown, generator.binomial(shown, 0.5, RUNS)
    )
    table = {c: epsilon_of_one_run(c, 10, canaries, delta=delta, risk=RISK) for c in range(11)}
    assert rarely_enough(false_alarms([table[int(c)] for c in correct], 0.0))
