"""Exact comparisons of a uniform number with exponentials.

A uniform number is a string of bits that nobody has read to its end. Its first 32 decide nearly always, in floating
point with a margin above its error; where they do not, further bits are drawn and compared in as many digits as it
takes. So exp(−x) is met exactly although it has no finite expansion.
"""

import decimal
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = Callable[[int], NDArray[np.uint32]]
Integers: TypeAlias = NDArray[np.int64]

_WORD = 32
# Relative error that the floating-point path may have; it has less than 1e-14.
_MARGIN = 1e-12


def exponential_coins(
    words: Words, exponents: NDArray[np.float64], exact: Callable[[int], Fraction]
) -> NDArray[np.bool_]:
    """Coins that come up true with probability exp(−x): `exponents` has x ≥ 0 in floating point, `exact(i)` is x."""
    first = words(len(exponents))
    with np.errstate(under="ignore"):
        thresholds = np.exp(-exponents) * 2.0**_WORD
        margins = thresholds * _MARGIN * (1 + exponents)
    result = first + 1.0 <= thresholds - margins
    # A first word of 0 is always open: thresholds too small for floating point are still above 0.
    is_open = ~result & ((first < thresholds + margins) | (first == 0))
    for index in np.flatnonzero(is_open):
        result[index] = _decided(words, int(first[index]), exact(int(index)))
    return result


def geometric(words: Words, unit: Fraction, count: int) -> Integers:
    """Independent whole numbers G ≥ 0 with P(G ≥ j) = exp(−unit · j): the floor of −log(uniform) / unit."""
    first = words(count)
    # Larger uniform numbers give smaller G. The ends of each 32-bit cell mostly agree.
    with np.errstate(divide="ignore"):
        lowest = -np.log((first + 1.0) / 2.0**_WORD) / float(unit)
        highest = -np.log(first / 2.0**_WORD) / float(unit)
    low, high = np.floor(lowest * (1 - _MARGIN)), np.floor(highest * (1 + _MARGIN))
    is_open = ~(low == high)
    result = np.where(is_open, 0.0, low).astype(np.int64)
    for index in np.flatnonzero(is_open):
        result[index] = _floor_of_log(words, int(first[index]), unit)
    return result


def discrete_laplace(words: Words, unit: Fraction, count: int) -> Integers:
    """Two-sided geometric noise, P(x) ∝ exp(−unit · |x|): the difference of two geometric numbers."""
    return geometric(words, unit, count) - geometric(words, unit, count)


def discrete_gaussian(words: Words, variance: int, count: int) -> Integers:
    """P(x) ∝ exp(−x² / 2 variance), by rejection from discrete Laplace noise (arXiv:2004.00010 Algorithm 3)."""
    scale = math.isqrt(variance) + 1
    kept: list[Integers] = []
    missing = count
    while missing > 0:
        # About seven in ten are accepted.
        proposed = discrete_laplace(words, Fraction(1, scale), max(16, round(1.6 * missing)))
        # (|x| − variance/scale)² / 2 variance, whole numbers below 2**53 until the square.
        distances = (np.abs(proposed) * scale - variance).astype(np.float64)
        denominator = 2 * variance * scale**2

        def exponent(index: int, distances: NDArray[np.float64] = distances, below: int = denominator) -> Fraction:
            return Fraction(int(distances[index]) ** 2, below)

        accepted = proposed[exponential_coins(words, distances**2 / denominator, exponent)][:missing]
        kept.append(accepted)
        missing -= len(accepted)
    return np.concatenate(kept) if kept else np.empty(0, dtype=np.int64)


def _decided(words: Words, first: int, exponent: Fraction) -> bool:
    """Whether the uniform number that starts with these bits is below exp(−exponent)."""
    # Its logarithm is negative; compare −log(uniform) > exponent.
    for lowest, highest in _shrinking_logarithms(words, first):
        if lowest > exponent:
            return True
        if highest < exponent:
            return False
    raise AssertionError("unreachable: the intervals shrink to a point")


def _floor_of_log(words: Words, first: int, unit: Fraction) -> int:
    for lowest, highest in _shrinking_logarithms(words, first):
        low, high = math.floor(lowest / unit), math.floor(highest / unit)
        if low == high:
            return low
    raise AssertionError("unreachable: the intervals shrink to a point")


def _shrinking_logarithms(words: Words, first: int) -> Iterator[tuple[Fraction, Fraction]]:
    """Ever smaller intervals around −log(uniform), each from 32 bits more."""
    value, bits = first, _WORD
    while True:
        value, bits = (value << _WORD) | int(words(1)[0]), bits + _WORD
        if value:
            # Both logarithms are correctly rounded by `decimal`; one unit in the last place covers that.
            context = decimal.Context(prec=bits // 3 + 30)
            above = _negative_logarithm(value, bits, context)
            below = _negative_logarithm(value + 1, bits, context)
            ulp = Fraction(1, 10 ** (bits // 3 + 20))
            yield max(Fraction(below) - ulp, Fraction(0)), Fraction(above) + ulp


def _negative_logarithm(value: int, bits: int, context: decimal.Context) -> Decimal:
    # −log(value / 2^bits), the quotient being exact: 2^bits has finitely many decimal digits.
    exact = decimal.Context(prec=3 * bits + 60, traps=[decimal.Inexact])
    return context.minus(context.ln(exact.divide(Decimal(value), Decimal(2**bits))))
