import hashlib
from fractions import Fraction

import numpy as np
import pytest
from statistics_helper import counts_are, rate_is

from dpal.errors import InvalidArgument
from dpal.randomness import SealedRandomness, new_key

KEY = bytes(range(32))


def test_the_same_key_gives_the_same_bits_again() -> None:
    first, second = SealedRandomness(KEY), SealedRandomness(KEY)
    for count in (1, 7, 1000):
        assert first.bytes(count) == second.bytes(count)
    assert SealedRandomness(KEY).bytes(64) != SealedRandomness(KEY[::-1]).bytes(64)


def test_no_two_calls_share_bits() -> None:
    source = SealedRandomness(KEY)
    assert len({source.bytes(32) for _ in range(1000)}) == 1000


def test_the_stream_is_shake_256_of_key_and_counter() -> None:
    """Pinned: another stream would make a step that died a different step when it is resumed by a newer version."""
    source = SealedRandomness(KEY)
    for number in (1, 2, 3):
        assert source.bytes(40) == hashlib.shake_256(KEY + number.to_bytes(8, "little")).digest(40)


def test_keys_are_new_and_hidden() -> None:
    assert new_key() != new_key()
    assert len(new_key()) == 32
    key = new_key()
    shown = repr(SealedRandomness(key))
    assert key.hex() not in shown
    assert repr(key) not in shown
    for wrong in (b"", b"short", bytes(33)):
        with pytest.raises(InvalidArgument, match="32 bytes"):
            SealedRandomness(wrong)


def test_its_coins_and_numbers_are_fair() -> None:
    source = SealedRandomness(KEY)
    coins = source.coins(Fraction(1, 3), 300_000)
    assert rate_is(int(coins.sum()), len(coins), 1 / 3)
    numbers = source.integers(10, 300_000)
    assert counts_are(np.bincount(numbers, minlength=10).tolist(), [0.1] * 10)


@pytest.mark.parametrize("before", [[], [0], [3], [4, 4], [7, 16, 1], [32], [33], [5, 5000]])
def test_another_stream_of_the_same_key_goes_on_from_a_position(before: list[int]) -> None:
    first, second = SealedRandomness(KEY), SealedRandomness(KEY)
    for count in before:
        first.bytes(count)
    first.coins(Fraction(1, 3), 10)
    second.bytes(3)
    second.go_to(first.position)
    assert second.position == first.position
    assert [first.bytes(count) for count in (1, 40, 7)] == [second.bytes(count) for count in (1, 40, 7)]
