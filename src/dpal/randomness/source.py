"""Random bits, and what is made of them with exact probabilities."""

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpal.errors import InvalidArgument
from dpal.randomness import exponentials
from dpal.randomness.record_coins import RecordCoins

# Bits of the first comparison of a coin; only one in 2**32 needs a second.
_WORD = 32
_KEY_BYTES = 32
_PHILOX_WORDS = 8
_SMALLEST_UNIT = Fraction(1, 10**12)


class Randomness(ABC):
    """Random bits, and exact coins, choices and noise made of them."""

    is_secure: bool = False

    @abstractmethod
    def bytes(self, count: int) -> bytes:
        """So many random bytes."""

    @property
    def position(self) -> int:
        """How far the stream has come. Only a stream whose bits can be had again has a position."""
        raise TypeError(f"The bits of {type(self).__name__} cannot be had again, so it has no position.")

    def go_to(self, position: int) -> None:
        """Go on as a stream of the same key or seed does that has come this far."""
        raise TypeError(f"The bits of {type(self).__name__} cannot be had again: it cannot go to {position}.")

    def words(self, count: int) -> NDArray[np.uint32]:
        """So many independent uniform 32-bit integers."""
        return np.frombuffer(self.bytes(4 * count), dtype=np.uint32)

    def record_coins(self) -> RecordCoins:
        """Coins by record id, under a fresh key."""
        return RecordCoins(self.bytes(_KEY_BYTES))

    def coins(self, probability: Fraction, count: int) -> NDArray[np.bool_]:
        """Independent coins that come up true with exactly this probability."""
        if not 0 <= probability <= 1:
            raise InvalidArgument("probability", probability, "a fraction from 0 to 1")
        if probability in (0, 1):
            return np.full(count, probability == 1)
        scaled = probability * 2**_WORD
        threshold = int(scaled)
        words = self.words(count)
        result = words < threshold
        # A word equal to the threshold leaves the coin open: the rest of the probability decides.
        rest = scaled - threshold
        ties = np.flatnonzero(words == threshold) if rest else np.empty(0, dtype=np.intp)
        if ties.size:
            result[ties] = self.coins(rest, len(ties))
        return result

    def integers(self, bound: int, count: int) -> NDArray[np.int64]:
        """Independent uniform whole numbers below a bound of at most 2^32."""
        if not 0 < bound <= 2**_WORD:
            raise InvalidArgument("bound", bound, "a whole number from 1 to 2^32")
        # Words at or above the largest multiple of the bound would favour small remainders: they are drawn again.
        fair = 2**_WORD // bound * bound
        words = self.words(count).astype(np.int64)
        while (unfair := np.flatnonzero(words >= fair)).size:
            words[unfair] = self.words(len(unfair))
        return words % bound

    def subset(self, population: int, size: int) -> NDArray[np.int64]:
        """So many different whole numbers below the population, in rising order; each subset is equally likely."""
        if not 0 <= size <= population:
            raise InvalidArgument("the size of the subset", size, f"from 0 to the population's {population:,}")
        if size in (0, population):
            return np.arange(size, dtype=np.int64)
        while True:
            keys = np.frombuffer(self.bytes(8 * population), dtype=np.uint64)
            order = np.argpartition(keys, (size - 1, size))
            # Equal keys on both sides of the cut would favour an index: then all keys are drawn again.
            if keys[order[size - 1]] != keys[order[size]]:
                return np.sort(order[:size]).astype(np.int64)

    def discrete_laplace(self, unit: Fraction, count: int) -> NDArray[np.int64]:
        """Independent noise with P(x) ∝ exp(−unit · |x|), exactly."""
        return exponentials.discrete_laplace(self.words, _checked_unit(unit), count)

    def discrete_gaussian(self, variance: int, count: int) -> NDArray[np.int64]:
        """Independent noise with P(x) ∝ exp(−x² / 2 variance), exactly, for a whole variance of at most 10^12."""
        if not 1 <= variance <= 10**12:
            raise InvalidArgument("variance", variance, "a whole number from 1 to 10^12")
        return exponentials.discrete_gaussian(self.words, variance, count)

    def exponential_picks(self, penalties: NDArray[np.integer], unit: Fraction, count: int) -> NDArray[np.int64]:
        """Different indices, one after the other, each with P(i) ∝ exp(−unit · penalties[i]) among those left.

        By rejection: a uniform index is accepted with that probability, and skipped if it was picked before.
        """
        population = len(penalties)
        unit = _checked_unit(unit)
        if not 0 <= count <= population:
            raise InvalidArgument("the number of picks", count, f"from 0 to the population's {population:,}")
        picked = np.empty(count, dtype=np.int64)
        # A common offset changes no probability. The smallest penalty left is accepted for sure.
        left, offsets = np.arange(population), penalties.astype(np.int64)
        done, batch = 0, max(1024, 2 * count)
        while done < count:
            offsets = offsets - offsets.min()
            candidates = self.integers(len(left), min(batch, 1 << 20))
            values = offsets[candidates]

            def exponent(index: int, values: NDArray[np.int64] = values) -> Fraction:
                return unit * int(values[index])

            accepted = candidates[exponentials.exponential_coins(self.words, values * float(unit), exponent)]
            _, first_times = np.unique(accepted, return_index=True)
            fresh = accepted[np.sort(first_times)][: count - done]
            picked[done : done + len(fresh)] = left[fresh]
            done += len(fresh)
            if len(fresh):
                left, offsets = np.delete(left, fresh), np.delete(offsets, fresh)
            # Few were accepted: larger batches, so that the work between them does not add up.
            batch *= 2
        return picked


def _checked_unit(unit: Fraction) -> Fraction:
    if unit < _SMALLEST_UNIT:
        raise InvalidArgument("unit", float(unit), "at least 1e-12")
    return unit


@dataclass(frozen=True, slots=True)
class SecureRandomness(Randomness):
    """The operating system's entropy through its cryptographic stream (on Linux, ChaCha20 in the kernel)."""

    is_secure = True

    def bytes(self, count: int) -> bytes:
        return os.urandom(count)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededRandomness(Randomness):
    """Repeatable bits for simulations. A known seed removes the noise, so this protects nobody."""

    seed: int
    nothing_is_private: bool
    _generator: np.random.Generator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.nothing_is_private is not True:
            allowed = "True: a seed makes noise predictable, so it may be used only where nothing is private"
            raise InvalidArgument("nothing_is_private", self.nothing_is_private, allowed)
        object.__setattr__(self, "_generator", np.random.Generator(np.random.Philox(self.seed)))

    def bytes(self, count: int) -> bytes:
        return self._generator.bytes(count)

    @property
    def position(self) -> int:
        """In words of 32 bits. Philox makes four of 64 at a time, and numbers these blocks."""
        state = cast("dict[str, Any]", self._generator.bit_generator.state)
        begun = 4 * int(state["state"]["counter"][0]) - (4 - int(state["buffer_pos"]))
        return 2 * begun - int(state["has_uint32"])

    def go_to(self, position: int) -> None:
        blocks, words = divmod(position, _PHILOX_WORDS)
        generator = np.random.Generator(np.random.Philox(self.seed).advance(blocks))
        # Of no bytes at all it would still take a word.
        if words:
            generator.bytes(4 * words)
        object.__setattr__(self, "_generator", generator)
