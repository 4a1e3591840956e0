"""The randomness of a step: a fresh key that is sealed with the charge, or a seed where nothing is private."""

import hashlib

from dpal.randomness import Randomness, SealedRandomness, SeededRandomness, new_key


def fresh_seal(seed: int | None, charge: int, withdrawn: int = 0) -> bytes:
    """A key for the charge of this ordinal: from the system's entropy, or from a seed that protects nobody.

    `withdrawn` is how many records were withdrawn, where that happened while the charge was open.
    """
    if seed is None:
        return new_key()
    again = f", {withdrawn}" if withdrawn else ""
    return hashlib.sha256(f"dpal, nothing is private: {seed}, {charge}{again}".encode()).digest()


def randomness_of(key: bytes, seed: int | None) -> Randomness:
    """The bits of a step. The same key gives the same bits, so a step that died is done again, not done anew."""
    if seed is None:
        return SealedRandomness(key)
    return SeededRandomness(seed=int.from_bytes(key, "little"), nothing_is_private=True)
