"""What counts of right and wrong guesses prove about ε: one-sided lower bounds with a stated false-alarm probability.

A guess "the canary is there" is right at the true-positive rate and wrong at the false-positive rate. For an
(ε, δ)-private mechanism, TPR ≤ e^ε · FPR + δ and 1 − FPR ≤ e^ε · (1 − TPR) + δ, whatever the rule of guessing.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta, binom, norm

from dpal.errors import InvalidArgument

_LARGEST_EPSILON = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """How often a rule said "there": of the canaries that were there, and of those that were not."""

    right: int
    present: int
    wrong: int
    absent: int

    def __post_init__(self) -> None:
        for name, part, whole in (("right", self.right, self.present), ("wrong", self.wrong, self.absent)):
            if not 0 <= part <= whole or whole == 0:
                raise InvalidArgument(f"{name} guesses", part, f"from 0 to {whole:,}, and canaries there must be")

    @property
    def true_positive_rate(self) -> float:
        return self.right / self.present

    @property
    def false_positive_rate(self) -> float:
        return self.wrong / self.absent


def surely_at_least(successes: int, trials: int, risk: float) -> float:
    """A rate that the true one is below with a probability of at most `risk` (Clopper and Pearson 1934)."""
    return float(beta.ppf(risk, successes, trials - successes + 1)) if successes else 0.0


def surely_at_most(successes: int, trials: int, risk: float) -> float:
    """A rate that the true one is above with a probability of at most `risk`."""
    return 1 - surely_at_least(trials - successes, trials, risk)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The rates that prove least among those that are still likely enough."""

    true_positive: float
    false_positive: float
    # The same for guesses "not there".
    true_negative: float
    false_negative: float

    @classmethod
    def of(cls, guesses: Guesses, *, risk: float) -> "Rates":
        """All four hold at once, but for a probability of at most `risk`: a bound may use any of them.

        They are two events, not four: a rate of misses is one minus a rate of hits, and so are their bounds.
        """
        true_positive = surely_at_least(guesses.right, guesses.present, risk / 2)
        false_positive = surely_at_most(guesses.wrong, guesses.absent, risk / 2)
        return cls(
            true_positive=true_positive,
            false_positive=false_positive,
            true_negative=1 - false_positive,
            false_negative=1 - true_positive,
        )

    @property
    def pairs(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """How often a guess is right, and how often at most it is wrong, in both directions."""
        return (self.true_positive, self.false_positive), (self.true_negative, self.false_negative)


def epsilon_from_rates(guesses: Guesses, *, delta: float, risk: float) -> float:
    """A lower bound on the ε of any (ε, δ) promise that holds, wrong with a probability of at most `risk`."""
    best = 0.0
    for right, wrong in Rates.of(guesses, risk=risk).pairs:
        if right > delta:
            best = max(best, _LARGEST_EPSILON if wrong <= 0 else math.log((right - delta) / wrong))
    return min(best, _LARGEST_EPSILON)


def gaussian_mu_from_rates(guesses: Guesses, *, risk: float) -> float:
    """A lower bound on μ if the trade-off between both errors is that of one Gaussian (Dong, Roth, Su 2022)."""
    pairs = Rates.of(guesses, risk=risk).pairs
    return max([0.0, *(float(norm.ppf(right) - norm.ppf(wrong)) for right, wrong in pairs if right > 0 and wrong > 0)])


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The ε at δ of a μ-Gaussian mechanism (Balle and Wang 2018, Theorem 8), by bisection."""
    if mu <= 0:
        return 0.0

    def at(epsilon: float) -> float:
        second = math.exp(epsilon + float(norm.logcdf(-epsilon / mu - mu / 2)))
        return float(norm.cdf(-epsilon / mu + mu / 2)) - second

    if at(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while at(high) > delta:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle) > delta else (low, middle)
    # The lower end: a lower bound on a lower bound.
    return low


def contradicts(guesses: Guesses, curve: Callable[[float], float], epsilons: Iterable[float], *, risk: float) -> bool:
    """Whether the rates are impossible under a promise δ(ε), wrong with a probability of at most `risk`.

    The whole curve is tried, not one point of it: noise that is a little too small shows first at small ε.
    """
    pairs = Rates.of(guesses, risk=risk).pairs
    return any(right > math.exp(epsilon) * wrong + curve(epsilon) for epsilon in epsilons for right, wrong in pairs)


def chance_of_so_many(correct: int, guessed: int, canaries: int, *, epsilon: float, delta: float) -> float:
    """How likely so many correct guesses are in one run of an (ε, δ)-private mechanism, at most.

    Steinke, Nasr, Jagielski 2023 (arXiv 2305.08846), Theorem 5.2: every canary is there by a fair coin of its own, and
    the auditor guesses about `guessed` of them. With f(v) = P(Binomial(guessed, e^ε / (1 + e^ε)) ≥ v), the chance of v
    or more is at most f(v) + 2 · canaries · δ · max over i of (f(v − i) − f(v)) / i. Nothing is assumed about how the
    canaries influence each other.
    """
    if not 0 <= correct <= guessed <= canaries:
        raise InvalidArgument("correct guesses", correct, f"at most {guessed:,} guesses of {canaries:,} canaries")
    accuracy = 1 / (1 + math.exp(-epsilon))
    chance = float(binom.sf(correct - 1, guessed, accuracy))
    if delta > 0 and correct > 0:
        chance += 2 * canaries * delta * _steepest(correct, guessed, accuracy, chance)
    return min(1.0, chance)


def _steepest(correct: int, guessed: int, accuracy: float, chance: float) -> float:
    """The maximum over i ≥ 1 of (f(correct − i) − f(correct)) / i."""
    best, first, block = 0.0, 1, 256
    while first <= correct:
        steps = np.arange(first, min(first + block, correct + 1))
        best = max(best, float(((binom.sf(correct - steps - 1, guessed, accuracy) - chance) / steps).max()))
        first, block = first + block, 2 * block
        # No difference is above 1, so from here on no quotient is larger than this.
        if best >= 1 / first:
            break
    return best


def epsilon_of_one_run(correct: int, guessed: int, canaries: int, *, delta: float, risk: float) -> float:
    """The largest ε that so many correct guesses rule out, wrong with a probability of at most `risk`."""

    def ruled_out(epsilon: float) -> bool:
        return chance_of_so_many(correct, guessed, canaries, epsilon=epsilon, delta=delta) < risk

    if guessed == 0 or not ruled_out(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high < _LARGEST_EPSILON and ruled_out(high):
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if ruled_out(middle) else (low, middle)
    return low
