"""What a promise for one record means for several records of one person."""

import math

from dpal.errors import InvalidArgument
from dpal.privacy import checks

# The logarithms below matter up to about a thousand, where rounding changes them by less than 1e-12.
_MARGIN = 1e-11


def group_delta(epsilon: float, delta: float, records: int) -> float:
    """The δ at records · ε for anyone with so many records, if each record has δ at ε. Upper bound; 1 promises nothing.

    δ_k(kε) ≤ δ · Σ_{i<k} e^{iε} (docs/maths/group-privacy.md): blank the k records one after another, and use the
    promise k times. It holds for every mechanism. Where a whole curve δ(ε) is known, the bound at any ε is
    group_delta(ε / k, curve(ε / k), k).
    """
    epsilon, delta, records = _checked(epsilon, delta, records)
    if delta == 0.0 or records == 1:
        return delta
    logarithm = math.log(delta) + _log_sum(epsilon, records)
    return 1.0 if logarithm >= 0.0 else min(1.0, math.nextafter(math.exp(logarithm) * (1.0 + _MARGIN), 1.0))


def record_delta(epsilon: float, delta: float, records: int) -> float:
    """The δ that each record needs at ε / records, so that anyone with so many records has δ at ε. Rounded down."""
    epsilon, delta, records = _checked(epsilon, delta, records)
    if delta == 0.0 or records == 1:
        return delta
    needed = math.exp(math.log(delta) - _log_sum(epsilon / records, records))
    return math.nextafter(needed * (1.0 - _MARGIN), 0.0)


def _checked(epsilon: float, delta: float, records: int) -> tuple[float, float, int]:
    number = checks.count("records", records)
    if number < 1:
        raise InvalidArgument("records", records, "a whole number of at least 1")
    return checks.positive("epsilon", epsilon), checks.probability("delta", delta), number


def _log_sum(epsilon: float, records: int) -> float:
    """The logarithm of Σ_{i<k} e^{iε} , as (k − 1)ε + log (1 − e^{−kε}) − log (1 − e^{−ε}): it cannot overflow."""
    ratio = math.log(-math.expm1(-records * epsilon)) - math.log(-math.expm1(-epsilon))
    return (records - 1) * epsilon + ratio
