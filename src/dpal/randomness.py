"""The only source of entropy. Secure by default; seeded only by a caller who says that nothing is private.

Decisions are made by comparing random integers with integers, so their probabilities are exact: floating point has no
part in them and leaks nothing (Mironov 2012).
"""

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpal.errors import InvalidArgument

# Bits of the first comparison of a coin; only one in 2**32 needs a second.
_WORD = 32


class Randomness(ABC):
    """Random bits, and exact coins made of them."""

    is_secure: bool = False

    @abstractmethod
    def bytes(self, count: int) -> bytes:
        """So many random bytes."""

    def words(self, count: int) -> NDArray[np.uint32]:
        """So many independent uniform 32-bit integers."""
        return np.frombuffer(self.bytes(4 * count), dtype=np.uint32)

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
