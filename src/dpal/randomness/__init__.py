"""The only source of entropy. Secure by default; seeded only by a caller who says that nothing is private.

Decisions are made by comparing random integers with exact numbers, so their probabilities are exact: floating point
has no part in them and leaks nothing (Mironov 2012).
"""

from dpal.randomness.id_column import IdColumn, Places
from dpal.randomness.record_coins import RecordCoins
from dpal.randomness.sealed import SealedRandomness, new_key
from dpal.randomness.source import Randomness, SecureRandomness, SeededRandomness

__all__ = [
    "IdColumn",
    "Places",
    "Randomness",
    "RecordCoins",
    "SealedRandomness",
    "SecureRandomness",
    "SeededRandomness",
    "new_key",
]
