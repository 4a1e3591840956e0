"""Noise and choices have the distributions they promise; each test has a twin with a planted bug."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import norm
from scripted import Scripted
from statistics_helper import counts_are, rate_is

from dpal.errors import InvalidArgument
from dpal.randomness import SecureRandomness, SeededRandomness
from dpal.randomness.exponentials import exponential_coins, geometric

TRIALS = 400_000


def seeded(seed: int = 11) -> SeededRandomness:
    return SeededRandomness(seed=seed, nothing_is_private=True)


def binned(values, reach: int) -> list[int]:
    return np.bincount(np.clip(values, -reach, reach) + reach, minlength=2 * reach + 1).tolist()


def masses(weight, reach: int) -> list[float]:
    """Probabilities of −reach … reach, the tails lumped into both ends."""
    weights = [weight(x) for x in range(-60 * reach, 60 * reach + 1)]
    probabilities = np.array(weights) / math.fsum(weights)
    middle = probabilities[59 * reach : 61 * reach + 1].copy()
    middle[0] += probabilities[: 59 * reach].sum()
    middle[-1] += probabilities[61 * reach + 1 :].sum()
    return middle.tolist()


@pytest.mark.parametrize("unit", [Fraction(1, 20), Fraction(1, 3), Fraction(5, 2)])
def test_discrete_laplace(unit: Fraction) -> None:
    reach = max(2, round(3 / unit))

    def expected(scale: float) -> list[float]:
        return masses(lambda x: math.exp(-abs(x) * float(unit) * scale), reach)

    observed = binned(seeded().discrete_laplace(unit, TRIALS), reach)
    assert counts_are(observed, expected(1.0))
    assert not counts_are(observed, expected(1.05))
    assert counts_are(binned(SecureRandomness().discrete_laplace(unit, TRIALS), reach), expected(1.0))


@pytest.mark.parametrize("variance", [5_000_000, 10**10])
def test_discrete_gaussian_of_large_variance(variance: int) -> None:
    # So fine a grid that the continuous quantiles are as good as exact: sixteen equally likely bins.
    values = seeded().discrete_gaussian(variance, TRIALS)
    for scale, is_right in ((1.0, True), (0.97, False)):
        edges = norm.ppf(np.arange(1, 16) / 16) * math.sqrt(variance) * scale
        counts = np.bincount(np.searchsorted(edges, values), minlength=16)
        assert counts_are(counts.tolist(), [1 / 16] * 16) is is_right


@pytest.mark.parametrize("variance", [1, 10, 1000])
def test_discrete_gaussian(variance: int) -> None:
    reach = max(3, round(2.5 * math.sqrt(variance)))

    def expected(scale: float) -> list[float]:
        return masses(lambda x: math.exp(-(x**2) / (2 * variance * scale)), reach)

    observed = binned(seeded().discrete_gaussian(variance, TRIALS), reach)
    assert counts_are(observed, expected(1.0))
    assert not counts_are(observed, expected(0.95))


def test_exponential_picks() -> None:
    penalties, unit = np.array([0, 3, 1, 7, 2]), Fraction(1, 4)
    weights = np.exp(-penalties / 4)
    randomness = seeded()
    picks = [tuple(randomness.exponential_picks(penalties, unit, 2).tolist()) for _ in range(20_000)]
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    observed = [picks.count(pair) for pair in pairs]

    def expected(weights) -> list[float]:
        total = weights.sum()
        return [float(weights[i] / total * weights[j] / (total - weights[i])) for i, j in pairs]

    assert counts_are(observed, expected(weights))
    assert not counts_are(observed, expected(weights**1.3))


def test_picking_everyone_is_a_permutation() -> None:
    picks = seeded().exponential_picks(np.array([0, 10**6, 5, 5]), Fraction(1, 1000), 4)
    assert sorted(picks.tolist()) == [0, 1, 2, 3]
    assert seeded().exponential_picks(np.array([4, 4]), Fraction(1), 0).tolist() == []


def test_integers_and_subsets_are_uniform() -> None:
    assert counts_are(np.bincount(seeded().integers(7, TRIALS)).tolist(), [1 / 7] * 7)
    randomness = seeded()
    subsets = [tuple(randomness.subset(4, 2).tolist()) for _ in range(20_000)]
    every = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    assert counts_are([subsets.count(pair) for pair in every], [1 / 6] * 6)
    # The words above the largest multiple of the bound are drawn again.
    assert Scripted(2**32 - 1, 5).integers(7, 1).tolist() == [5]
    assert Scripted(2**32 - 1).integers(2**32, 1).tolist() == [2**32 - 1]


def test_a_tie_at_the_edge_of_a_subset_is_drawn_again() -> None:
    assert Scripted(1, 0, 1, 0, 9, 0, 3, 0).subset(2, 1).tolist() == [1]


def words_of(number, words: int) -> list[int]:
    """The first 32-bit words of a number in [0, 1)."""
    whole = int(mpmath.floor(number * mpmath.mpf(2) ** (32 * words)))
    return [(whole >> (32 * (words - 1 - index))) & 0xFFFFFFFF for index in range(words)]


def test_uniform_numbers_next_to_an_exponential_are_decided_by_further_bits() -> None:
    with mpmath.workdps(60):
        digits = words_of(mpmath.exp(-1), 4)
    below, above = [*digits[:3], digits[3] - 1], [*digits[:3], digits[3] + 1]
    for script, is_below in ((below, True), (above, False)):
        # The smallest G with P(G ≥ 1) = exp(−1), and the coin of that probability, agree about which side it is.
        assert geometric(Scripted(*script).words, Fraction(1), 1).tolist() == [int(is_below)]
        coin = exponential_coins(Scripted(*script).words, np.array([1.0]), lambda _: Fraction(1))
        assert coin.tolist() == [is_below]
    # Words that decide at once leave the rest unread.
    rest = Scripted(digits[0] - 5, 7)
    assert exponential_coins(rest.words, np.array([1.0]), lambda _: Fraction(1)).tolist() == [True]
    assert rest.left == [7]


@pytest.mark.parametrize("unit", [Fraction(1, 1000), Fraction(3, 10), Fraction(2)])
def test_the_mass_of_geometric_numbers_is_exact(unit: Fraction) -> None:
    # G ≥ j exactly for uniform numbers below exp(−unit · j): checked 2^-128 to either side of the boundaries, so every
    # mass exp(−unit · j) − exp(−unit · (j + 1)) is exact, and with it that of the difference of two.
    for j in (1, 2, 3, 10):
        with mpmath.workdps(80):
            boundary = int(mpmath.floor(mpmath.exp(-j * mpmath.mpf(unit.numerator) / unit.denominator) * 2**128))
        for number, expected in ((boundary - 1, j), (boundary + 1, j - 1)):
            script = [(number >> shift) & 0xFFFFFFFF for shift in (96, 64, 32, 0)]
            assert geometric(Scripted(*script).words, unit, 1).tolist() == [expected]


def test_chances_too_small_for_floating_point_are_not_zero() -> None:
    # exp(−1000) is below the smallest double. A uniform number of 1,500 zero bits is below it all the same.
    def coin(words: list[int]) -> bool:
        return bool(exponential_coins(Scripted(*words).words, np.array([1000.0]), lambda _: Fraction(1000))[0])

    assert coin([0] * 46 + [1])
    assert not coin([0] * 20 + [1])
    assert geometric(Scripted(*[0] * 46, 0x90000000).words, Fraction(1), 1)[0] == 1020


def test_a_wrong_word_of_ten_would_be_noticed() -> None:
    # The twin of the coins' test: heads at exp(−1/2), checked against exp(−1/2) and 5% off.
    coins = exponential_coins(seeded().words, np.full(TRIALS, 0.5), lambda _: Fraction(1, 2))
    assert rate_is(int(coins.sum()), TRIALS, math.exp(-0.5))
    assert not rate_is(int(coins.sum()), TRIALS, 0.95 * math.exp(-0.5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda source: source.integers(0, 1), "bound is 0"),
        (lambda source: source.subset(3, 4), "size of the subset is 4"),
        (lambda source: source.discrete_laplace(Fraction(0), 1), "unit is 0"),
        (lambda source: source.discrete_gaussian(0, 1), "variance is 0"),
        (lambda source: source.exponential_picks(np.array([1]), Fraction(1), 2), "number of picks is 2"),
    ],
)
def test_bad_arguments_are_named(call, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        call(seeded())
