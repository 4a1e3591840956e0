"""One-sided searches: they only ever return a point that was itself evaluated and found safe."""

import math
from collections.abc import Callable

_MOST_EVALUATIONS = 200


def bracket(
    gap: Callable[[float], float], *, start: float, stride: float, safest: float, boldest: float
) -> tuple[float, float] | None:
    """Points (safe, unsafe) with gap(safe) ≤ 0 < gap(unsafe), found by growing strides from the start.

    A positive stride leads to safety. None if even `safest` is not safe; (boldest, boldest) if even that is.
    """
    outward = 1.0 if stride > 0 else -1.0
    last = point = start
    if not gap(point) <= 0:  # a NaN is not safe
        while not gap(point) <= 0:
            if point == safest:
                return None
            last, point = point, _not_beyond(point + stride, safest, outward)
            stride *= 2
        return point, last
    while gap(point) <= 0:
        if point == boldest:
            return boldest, boldest
        last, point = point, _not_beyond(point - stride, boldest, -outward)
        stride *= 2
    return last, point


def _not_beyond(point: float, end: float, outward: float) -> float:
    return end if (point - end) * outward > 0 else point


def safe_crossing(
    gap: Callable[[float], float], *, safe: float, unsafe: float, gap_tolerance: float, width_tolerance: float = 1e-12
) -> float:
    """The point nearest to `unsafe` with gap ≤ 0, for a monotone gap with gap(safe) ≤ 0 < gap(unsafe).

    False position (the Illinois variant), with a bisection whenever four steps have not quartered the bracket.
    It ends when the safe end's gap is within gap_tolerance of 0, or the bracket is narrower than
    width_tolerance.
    """
    safe_gap, unsafe_gap = gap(safe), gap(unsafe)
    if not safe_gap <= 0:
        raise ValueError(f"gap({safe!r}) is {safe_gap!r}: the safe end is not safe")
    if unsafe_gap <= 0:
        return unsafe
    # The weights are the gaps at both ends; one that stays for a second step in a row is halved.
    weight_safe, weight_unsafe = safe_gap, unsafe_gap
    last_was_safe: bool | None = None
    checkpoint = math.inf
    for evaluation in range(_MOST_EVALUATIONS):
        width = abs(unsafe - safe)
        if safe_gap >= -gap_tolerance or width <= width_tolerance:
            break
        stalled = False
        if evaluation % 4 == 3:
            stalled, checkpoint = width > checkpoint / 4, width
        if stalled or not math.isfinite(weight_unsafe - weight_safe):
            middle = (safe + unsafe) / 2
        else:
            # Aim a little to the safe side of 0, where the answer is accepted at once.
            share = (-gap_tolerance / 2 - weight_safe) / (weight_unsafe - weight_safe)
            middle = safe + (unsafe - safe) * min(max(share, 0.0), 1.0)
        if middle in (safe, unsafe):
            break
        middle_gap = gap(middle)
        is_safe = middle_gap <= 0  # a NaN is not
        if is_safe:
            safe, safe_gap, weight_safe = middle, middle_gap, middle_gap
            weight_unsafe *= 0.5 if last_was_safe is True else 1.0
        else:
            unsafe, weight_unsafe = middle, middle_gap
            weight_safe *= 0.5 if last_was_safe is False else 1.0
        last_was_safe = is_safe
    return safe


def most_that_fits(fits: Callable[[int], bool], *, limit: int) -> int:
    """The largest whole number from 0 to limit that fits, where 0 fits and what fits once fits below."""
    fitting, failing = 0, 1
    while failing <= limit and fits(failing):
        fitting, failing = failing, 2 * failing
    failing = min(failing, limit + 1)
    while failing - fitting > 1:
        middle = (fitting + failing) // 2
        if fits(middle):
            fitting = middle
        else:
            failing = middle
    return fitting
