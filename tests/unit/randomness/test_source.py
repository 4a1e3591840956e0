"""What is made of random bits, at its edges. Probabilities are tested statistically, and exactly with given bits."""

from fractions import Fraction

import numpy as np
import pytest
from scripted import Scripted

from dpal.errors import InvalidArgument
from dpal.randomness import Randomness, SecureRandomness, SeededRandomness


def seeded(seed: int = 7) -> SeededRandomness:
    return SeededRandomness(seed=seed, nothing_is_private=True)


@pytest.mark.parametrize("promise", [False, None, 1, "yes"])
def test_a_seed_needs_the_promise_itself(promise: object) -> None:
    """What only counts as true is not enough: a known seed removes the noise."""
    with pytest.raises(InvalidArgument, match="nothing_is_private"):
        SeededRandomness(seed=1, nothing_is_private=promise)  # type: ignore[arg-type]


def test_nobody_or_everybody_needs_no_bits() -> None:
    assert Scripted().subset(5, 0).tolist() == []
    assert Scripted().subset(5, 5).tolist() == [0, 1, 2, 3, 4]
    assert Scripted().subset(0, 0).tolist() == []
    assert Scripted().integers(10, 0).tolist() == []


def test_a_subset_is_in_rising_order_and_has_nobody_twice() -> None:
    for size in (1, 7, 19):
        chosen = seeded().subset(20, size).tolist()
        assert chosen == sorted(set(chosen)) and len(chosen) == size
        assert chosen[0] >= 0 and chosen[-1] < 20


def test_picks_go_by_the_penalties_and_take_nobody_twice() -> None:
    # A penalty of 10^6 steps of 1 is a chance of exp(−10^6): the order is certain for every practical purpose.
    assert seeded().exponential_picks(np.array([10**6, 0, 2 * 10**6]), Fraction(1), 3).tolist() == [1, 0, 2]
    everyone = seeded().exponential_picks(np.arange(50), Fraction(1, 100), 50)
    assert sorted(everyone.tolist()) == list(range(50))


def test_a_common_penalty_changes_nothing() -> None:
    penalties = np.array([3, 0, 5, 1])
    plain, raised = (seeded().exponential_picks(penalties + offset, Fraction(1, 2), 3) for offset in (0, 10**9))
    assert plain.tolist() == raised.tolist()


def test_secure_bits_are_secure_and_every_other_source_is_not_unless_it_says_so() -> None:
    assert SecureRandomness().is_secure
    assert not seeded().is_secure
    assert not Randomness.is_secure
    assert len(SecureRandomness().bytes(100)) == 100


@pytest.mark.parametrize("before", [[], [4], [8, 4], [28], [32], [36], [7, 7, 16], [1, 4000, 3], [64 * 100]])
def test_another_stream_of_the_same_seed_goes_on_from_a_position(before: list[int]) -> None:
    first, second = seeded(), seeded()
    for count in before:
        first.bytes(count)
    second.bytes(20)
    second.go_to(first.position)
    assert second.position == first.position == sum(-(-count // 4) for count in before)
    assert [first.bytes(count) for count in (1, 40, 7)] == [second.bytes(count) for count in (1, 40, 7)]


def test_entropy_that_cannot_be_had_again_has_no_position() -> None:
    with pytest.raises(TypeError, match="cannot be had again"):
        _ = SecureRandomness().position
    with pytest.raises(TypeError, match="cannot be had again"):
        SecureRandomness().go_to(3)
