"""Checks of arguments: each returns the value in its plain Python type, or says what is allowed."""

import math
import operator
from typing import SupportsFloat, SupportsIndex

from dpal.errors import InvalidArgument

_LARGEST_COUNT = 10**18


def number(name: str, value: object, allowed: str) -> float:
    """The value as a float; text, booleans, NaN and anything else that is not a number are refused."""
    if type(value) is float and value == value:  # the common case, without the slow look at protocols
        return value
    if isinstance(value, bool) or not isinstance(value, int | SupportsFloat | SupportsIndex):
        raise InvalidArgument(name, value, allowed)
    try:
        as_float = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(name, value, allowed) from error
    if math.isnan(as_float):
        raise InvalidArgument(name, value, allowed)
    return as_float


def probability(name: str, value: object) -> float:
    """A number in [0, 1]."""
    allowed = "a number from 0 to 1"
    checked = number(name, value, allowed)
    if not 0 <= checked <= 1:
        raise InvalidArgument(name, value, allowed)
    return checked


def noise(name: str, value: object) -> float:
    """A noise multiplier, within what the arithmetic can tell apart from none and from infinite."""
    allowed = "a finite number above 0 (from 1e-9 to 1e12)"
    checked = number(name, value, allowed)
    if not 1e-9 <= checked <= 1e12:
        raise InvalidArgument(name, value, allowed)
    return checked


def open_probability(name: str, value: object) -> float:
    """A number in (0, 1)."""
    allowed = "a number above 0 and below 1"
    checked = number(name, value, allowed)
    if not 0 < checked < 1:
        raise InvalidArgument(name, value, allowed)
    return checked


def positive(name: str, value: object) -> float:
    """A finite number above 0."""
    allowed = "a finite number above 0"
    checked = number(name, value, allowed)
    if not 0 < checked < math.inf:
        raise InvalidArgument(name, value, allowed)
    return checked


def non_negative(name: str, value: object) -> float:
    """A finite number of at least 0."""
    allowed = "a finite number of at least 0"
    checked = number(name, value, allowed)
    if not 0 <= checked < math.inf:
        raise InvalidArgument(name, value, allowed)
    return checked


def count(name: str, value: object) -> int:
    """A whole number from 0 to 10^18."""
    if type(value) is int and 0 <= value <= _LARGEST_COUNT:
        return value
    allowed = "a whole number of at least 0 (and at most 10^18)"
    checked = number(name, value, allowed)
    if not 0 <= checked <= _LARGEST_COUNT or checked != math.floor(checked):
        raise InvalidArgument(name, value, allowed)
    # Through the integer protocol where there is one: a float would lose digits above 2**53.
    whole = operator.index(value) if isinstance(value, int | SupportsIndex) else int(checked)
    if whole > _LARGEST_COUNT:
        raise InvalidArgument(name, value, allowed)
    return whole
