"""Arguments at their boundaries: what is allowed comes back as a plain number, and nothing else comes back."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpal.errors import InvalidArgument
from dpal.privacy import checks

TINY = 5e-324
CHECKS: dict[str, tuple[Callable[[str, object], float], list[float], list[float]]] = {
    "probability": (checks.probability, [0, 1, 0.5, TINY], [-TINY, math.nextafter(1, 2), math.inf]),
    "open probability": (checks.open_probability, [TINY, 0.5, math.nextafter(1, 0)], [0, 1, -0.5]),
    "noise": (checks.noise, [1e-9, 1, 1e12], [0, math.nextafter(1e-9, 0), math.nextafter(1e12, math.inf), -1]),
    "positive": (checks.positive, [TINY, 1, 1e308], [0, -1, math.inf]),
    "non-negative": (checks.non_negative, [0, TINY, 1e308], [-TINY, math.inf]),
    "count": (checks.count, [0, 1, 10**18], [-1, 0.5, 2 * 10**18, math.inf]),
}
NOT_NUMBERS = ["1", b"1", None, True, False, math.nan, -math.inf, 1j, [1], np.array([0.5, 0.5]), Decimal("NaN")]


@pytest.mark.parametrize("name", CHECKS)
def test_the_boundaries(name: str) -> None:
    check, allowed, refused = CHECKS[name]
    for value in allowed:
        assert check("x", value) == value
    for value in refused:
        with pytest.raises(InvalidArgument, match="the x is"):
            check("the x", value)


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
@pytest.mark.parametrize("name", CHECKS)
def test_what_is_not_a_number_is_refused_everywhere(name: str, value: object) -> None:
    with pytest.raises(InvalidArgument, match="must be a"):
        CHECKS[name][0]("x", value)


@pytest.mark.parametrize("value", [np.float32(0.5), np.float64(0.5), Fraction(1, 2), Decimal("0.5")])
def test_other_kinds_of_numbers_become_plain_ones(value: object) -> None:
    assert type(checks.probability("x", value)) is float
    assert checks.probability("x", value) == 0.5


def test_counts_keep_every_digit() -> None:
    """Through a float, 2^53 + 1 steps would be charged as 2^53."""
    for value in (2**53 + 1, np.int64(2**53 + 1)):
        assert checks.count("x", value) == 2**53 + 1
    assert type(checks.count("x", np.int32(3))) is int
    assert checks.count("x", 3.0) == 3


def test_a_number_too_large_for_a_float_is_named_and_not_an_overflow() -> None:
    for check in (checks.count, checks.positive, checks.noise):
        with pytest.raises(InvalidArgument, match="x is 1000"):
            check("x", 10**400)


def test_the_largest_count_is_exact() -> None:
    with pytest.raises(InvalidArgument, match=r"at most 10\^18"):
        checks.count("x", 10**18 + 1)
