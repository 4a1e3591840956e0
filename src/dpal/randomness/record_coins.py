"""Coins of each record's own: a keyed function of its id, so neither order nor repetition changes them.

The function is AES-256-CMAC (RFC 4493) under a key of the step, computed for a whole column of ids at a time. Without
the key its values cannot be told from independent uniform bits, and a task that is done again gets the same ones.
"""

import hashlib
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpal.errors import InvalidArgument
from dpal.randomness.id_column import IdColumn

_BLOCK = 16
_AS_BLOCK = np.dtype("V16")
_WORD = 32
_WORDS_PER_TAG = _BLOCK * 8 // _WORD
_CHUNK = 1 << 15
# What a coin is for. Each purpose has keys of its own.
INTEGERS, COINS, ORDER = b"integers", b"coins", b"order"


@dataclass(frozen=True, slots=True)
class RecordCoins:
    """Coins, whole numbers and an order by record. As secret as the key."""

    key: bytes = field(repr=False)

    def integers(self, bound: int, ids: IdColumn) -> NDArray[np.int64]:
        """For each id a whole number below a bound of at most 2^32, each equally likely."""
        if not 0 < bound <= 2**_WORD:
            raise InvalidArgument("bound", bound, "a whole number from 1 to 2^32")
        # Words at or above the largest multiple of the bound would favour small remainders: their ids draw again.
        fair = 2**_WORD // bound * bound
        words = self._words(INTEGERS, 0, ids).astype(np.int64)
        draw = 0
        while (unfair := np.flatnonzero(words >= fair)).size:
            draw += 1
            words[unfair] = self._words(INTEGERS, draw, ids[unfair])
        return words % bound

    def coins(self, probability: Fraction, ids: IdColumn) -> NDArray[np.bool_]:
        """For each id a coin that comes up true with exactly this probability."""
        if not 0 <= probability <= 1:
            raise InvalidArgument("probability", probability, "a fraction from 0 to 1")
        result = np.full(len(ids), probability == 1)
        rest, open_ones, draw = probability, np.arange(len(ids)), 0
        while rest not in (0, 1) and open_ones.size:
            words = self._words(COINS, draw, ids[open_ones])
            scaled = rest * 2**_WORD
            threshold = int(scaled)
            result[open_ones] = words < threshold
            # A word equal to the threshold leaves the coin open: the rest of the probability decides.
            rest, open_ones, draw = scaled - threshold, open_ones[words == threshold], draw + 1
        return result

    def order(self, ids: IdColumn) -> NDArray[np.uint64]:
        """Two numbers for each id, (ids, 2): sorted by them, the ids are in a random order."""
        return self._tags(ORDER, 0, ids).view(">u8").astype(np.uint64)

    def subset(self, ids: IdColumn, size: int) -> NDArray[np.int64]:
        """The places of so many ids, in rising order; each subset is equally likely."""
        if not 0 <= size <= len(ids):
            raise InvalidArgument("the size of the subset", size, f"from 0 to the number of ids, {len(ids):,}")
        if size in (0, len(ids)):
            return np.arange(size, dtype=np.int64)
        return np.sort(first_in_order(self.order(ids), size))

    def _words(self, purpose: bytes, draw: int, ids: IdColumn) -> NDArray[np.uint32]:
        tags = self._tags(purpose, draw // _WORDS_PER_TAG, ids)
        return tags.view("<u4")[:, draw % _WORDS_PER_TAG].astype(np.uint32)

    def _tags(self, purpose: bytes, number: int, ids: IdColumn) -> NDArray[np.uint8]:
        key = hashlib.blake2b(
            number.to_bytes(8, "little"), digest_size=32, key=self.key, person=b"dpal " + purpose
        ).digest()
        return tags(key, ids)


def first_in_order(order: NDArray[np.uint64], size: int) -> NDArray[np.int64]:
    """The places of the first so many in this order."""
    if size >= len(order):
        return np.lexsort((order[:, 1], order[:, 0])).astype(np.int64)
    # Only those that may be among the first are sorted.
    last = np.partition(order[:, 0], size - 1)[size - 1]
    near = np.flatnonzero(order[:, 0] <= last)
    return near[np.lexsort((order[near, 1], order[near, 0]))][:size].astype(np.int64)


def tags(key: bytes, ids: IdColumn) -> NDArray[np.uint8]:
    """AES-CMAC of each id, (ids, 16)."""
    # Not before it is needed: most commands draw no coin.
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    encrypt = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update  # noqa: S305 (blocks of CMAC, not a message)
    masks, last = _last_blocks(_doubled(encrypt(bytes(_BLOCK))))
    # Every place of the buffer as the start of a block, without copying; beyond its end there are zeros.
    padded = np.concatenate([ids.data, np.zeros(_BLOCK, dtype=np.uint8)])
    at = np.ndarray(len(ids.data) + 1, dtype=_AS_BLOCK, buffer=padded, strides=(1,))
    result = np.empty(len(ids), dtype=_AS_BLOCK)
    shortest, longest = (int(bound) for bound in (ids.lengths.min(initial=_BLOCK), ids.lengths.max(initial=0)))
    blocks = np.maximum(1, -(-ids.lengths // _BLOCK)) if longest > _BLOCK else np.ones(1, dtype=np.int64)
    # Ids of as many blocks go through the cipher together; mostly that is all of them.
    for count in np.unique(blocks).tolist():
        places = np.flatnonzero(blocks == count) if longest > _BLOCK else None
        for start in range(0, len(ids) if places is None else len(places), _CHUNK):
            chunk = slice(start, start + _CHUNK) if places is None else places[start : start + _CHUNK]
            starts, left = ids.starts[chunk], ids.lengths[chunk] - (count - 1) * _BLOCK
            if shortest == longest:
                # One row, which counts for all.
                left = left[:1]
            state = np.zeros((len(starts), 2), dtype=np.uint64)
            for block in range(count):
                content = at[starts + block * _BLOCK].view(np.uint64).reshape(-1, 2)
                if block == count - 1:
                    content = (content & masks[left]) ^ last[left]
                state = np.frombuffer(encrypt((state ^ content).view(np.uint8).data), dtype=np.uint64).reshape(-1, 2)
            result[chunk] = state.ravel().view(_AS_BLOCK)
    return result.view(np.uint8).reshape(-1, _BLOCK)


def _last_blocks(subkey: bytes) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """By the number of bytes left, 0 to 16: what to keep of the last block, and what to add (RFC 4493 Sec. 2.4)."""
    masks, added = np.zeros((2, _BLOCK + 1, _BLOCK), dtype=np.uint8)
    for left in range(_BLOCK + 1):
        masks[left, :left] = 0xFF
        added[left] = np.frombuffer(subkey if left == _BLOCK else _doubled(subkey), dtype=np.uint8)
        added[left, left : left + 1] ^= 0x80
    return masks.view(np.uint64), added.view(np.uint64)


def _doubled(block: bytes) -> bytes:
    """Twice the block in the field of 2^128 elements."""
    value = int.from_bytes(block, "big") << 1
    return ((value & (2**128 - 1)) ^ (0x87 if value >> 128 else 0)).to_bytes(_BLOCK, "big")
