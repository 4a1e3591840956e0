"""Exact comparisons with exponentials, for given bits. Distributions are tested statistically."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scripted import Scripted

from dpal.randomness import SeededRandomness
from dpal.randomness.exponentials import discrete_gaussian, discrete_laplace, exponential_coins, geometric

HALF, QUARTER = 2**31, 2**30


def coin(*words: int, exponent: Fraction) -> bool:
    return bool(exponential_coins(Scripted(*words).words, np.array([float(exponent)]), lambda _: exponent)[0])


def test_a_coin_by_hand() -> None:
    """exp(−log 2) is one half, or next to it for a fraction near log 2."""
    exponent = Fraction(math.log(2))
    assert coin(HALF - 1000, exponent=exponent)
    assert not coin(HALF + 1000, exponent=exponent)


def test_an_exponent_of_zero_is_certain_even_for_the_largest_number() -> None:
    assert coin(0, 0, exponent=Fraction(0))
    assert coin(2**32 - 1, 2**32 - 1, 5, exponent=Fraction(0))


def test_geometric_numbers_by_hand() -> None:
    """−log(1/2) = 0.693 and −log(1/4) = 1.386, in steps of 1/10."""
    assert geometric(Scripted(HALF, QUARTER).words, Fraction(1, 10), 2).tolist() == [6, 13]
    # Of the largest uniform number the logarithm is 0, and in large steps everything is.
    assert geometric(Scripted(2**32 - 1).words, Fraction(1), 1).tolist() == [0]
    assert geometric(Scripted(QUARTER).words, Fraction(50), 1).tolist() == [0]


def test_laplace_noise_is_the_difference_of_two() -> None:
    assert discrete_laplace(Scripted(HALF, QUARTER).words, Fraction(1, 10), 1).tolist() == [-7]
    assert discrete_laplace(Scripted(QUARTER, HALF).words, Fraction(1, 10), 1).tolist() == [7]


@pytest.mark.parametrize("count", [0, 1, 100])
def test_as_many_as_were_asked_for(count: int) -> None:
    words = SeededRandomness(seed=1, nothing_is_private=True).words
    for noise in (discrete_gaussian(words, 25, count), discrete_laplace(words, Fraction(1, 5), count)):
        assert noise.shape == (count,) and noise.dtype == np.int64


def test_the_largest_variance_stays_exact_whole_numbers() -> None:
    noise = discrete_gaussian(SeededRandomness(seed=1, nothing_is_private=True).words, 10**12, 1000)
    assert 0.9e6 < noise.std() < 1.1e6
    assert abs(noise).max() < 10 * 10**6
