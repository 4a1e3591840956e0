"""A stream from a secret key: the same key gives the same bits again; without it they cannot be told from chance."""

import hashlib
import os
from dataclasses import dataclass, field

from dpal.errors import InvalidArgument
from dpal.randomness.source import Randomness

KEY_BYTES = 32


def new_key() -> bytes:
    """A key from the operating system's entropy."""
    return os.urandom(KEY_BYTES)


@dataclass(slots=True)
class SealedRandomness(Randomness):
    """SHAKE-256 of a key and a counter. As secret as its key, which is to be erased once its output is released.

    It lets a step that was charged and then died be done again with the very same bits.
    """

    is_secure = True
    key: bytes = field(repr=False)
    _calls: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.key) != KEY_BYTES:
            raise InvalidArgument("the length of the key", len(self.key), f"{KEY_BYTES} bytes")

    @property
    def position(self) -> int:
        """The number of calls so far, whatever their lengths."""
        return self._calls

    def go_to(self, position: int) -> None:
        self._calls = position

    def bytes(self, count: int) -> bytes:
        self._calls += 1
        # The key has a fixed length, so key and counter cannot run together in two ways.
        return hashlib.shake_256(self.key + self._calls.to_bytes(8, "little")).digest(count)
