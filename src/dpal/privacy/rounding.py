"""Rounding that never flatters: an ε that is shown is never below the true one."""

import math
from decimal import ROUND_CEILING, Context, Decimal


def rounded_up(value: float, digits: int) -> float:
    """The value rounded up to so many decimals, exact on the float's own value; infinity stays infinity."""
    if math.isinf(value):
        return value
    # The default context has 28 digits, and raises where a large number with many decimals needs more.
    return float(Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_CEILING, Context(prec=400)))
