from fractions import Fraction

import pytest
from scripted import Scripted
from statistics_helper import rate_is

from dpal.errors import InvalidArgument
from dpal.randomness import SecureRandomness, SeededRandomness

TRIALS = 1_000_000


def seeded(seed: int = 7) -> SeededRandomness:
    return SeededRandomness(seed=seed, nothing_is_private=True)


@pytest.mark.parametrize("probability", [Fraction(1, 3), Fraction(1, 2), Fraction(1, 20), Fraction(9, 10)])
def test_coins_have_their_probability(probability: Fraction) -> None:
    heads = int(seeded().coins(probability, TRIALS).sum())
    assert rate_is(heads, TRIALS, float(probability))
    # The twin: coins 5% off must be noticed.
    wrong = int(seeded().coins(min(Fraction(1), probability * Fraction(95, 100)), TRIALS).sum())
    assert not rate_is(wrong, TRIALS, float(probability))


def test_secure_coins_have_their_probability_too() -> None:
    heads = int(SecureRandomness().coins(Fraction(1, 3), TRIALS).sum())
    assert rate_is(heads, TRIALS, 1 / 3)


def test_a_tie_is_decided_by_the_next_word() -> None:
    # 1/3 in binary is 0.0101…: the first 32 bits are 0x55555555, and so are the next.
    third, tie = Fraction(1, 3), 0x55555555
    assert Scripted(tie, tie - 1).coins(third, 1).tolist() == [True]
    assert Scripted(tie, tie + 1).coins(third, 1).tolist() == [False]
    assert Scripted(tie, tie, 0).coins(third, 1).tolist() == [True]
    assert Scripted(tie, 7).coins(Fraction(tie, 2**32), 1).tolist() == [False]


def test_sure_coins_need_no_bits() -> None:
    assert Scripted().coins(Fraction(0), 3).tolist() == [False] * 3
    assert Scripted().coins(Fraction(1), 3).tolist() == [True] * 3
    for wrong in (Fraction(-1, 2), Fraction(3, 2)):
        with pytest.raises(InvalidArgument, match="probability"):
            seeded().coins(wrong, 1)


def test_a_seed_needs_a_promise_and_repeats() -> None:
    with pytest.raises(InvalidArgument, match="a seed makes noise predictable"):
        SeededRandomness(seed=1, nothing_is_private=False)
    assert seeded(3).bytes(64) == seeded(3).bytes(64) != seeded(4).bytes(64)
    assert SecureRandomness().bytes(64) != SecureRandomness().bytes(64)
    assert SecureRandomness().is_secure
    assert not seeded().is_secure
