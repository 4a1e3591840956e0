"""What an ε and a δ mean, in words for the people who decide whether they are small enough."""

import math
from collections.abc import Iterable

from dpal.planning.unit_words import plural, whether_used
from dpal.privacy.rounding import rounded_up

# Above this ε the bound says almost nothing: the worst case is a guess that is right 99.995% of the time.
LARGEST_EPSILON = 10.0
ASKED = "labels asked for"
LITTLE = "This protects little"
_WORST_CASE = (
    "This is the worst case, against someone who knows every other {unit} and sees everything that is released"
)


def exactly(value: float) -> str:
    """An ε or δ as it was chosen, with every digit: 8, 0.1, 1e-05."""
    return repr(float(value)).removesuffix(".0")


def spaced(name: str) -> str:
    """A name in a program as words: balanced_accuracy is "balanced accuracy"."""
    return name.replace("_", " ")


def parameter(name: str, value: float) -> str:
    """The value of a mechanism's parameter, short enough for a table; an ε is rounded up."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{rounded_up(value, 4):.4f}" if "epsilon" in name else f"{value:.4g}"


def labels_axis(are_planned: Iterable[bool]) -> str:
    """What an axis of labels shows: real numbers of labels, or planned ones where the real ones stay inside."""
    planned = set(are_planned)
    if planned == {True}:
        return "labels planned"
    return "labels asked for, or planned where selections stay inside" if planned == {True, False} else ASKED


def right_guesses(epsilon: float, delta: float) -> float:
    """The largest probability to guess right whether a record was used, if chance alone is right half of the time.

    (e^ε + δ) / (1 + e^ε): for every test, the errors satisfy e1 + e^ε·e2 ≥ 1 − δ (arXiv:1311.0776 Thm. 2.1).
    """
    return 1.0 - (1.0 - min(delta, 1.0)) * math.exp(-epsilon) / (1.0 + math.exp(-epsilon))


def guess_sentence(epsilon: float, delta: float, *, whether: str = "a certain record was used") -> str:
    """The worst case as a number that anyone can judge."""
    return (
        f"Someone who would guess right 50% of the time whether {whether} could guess right "
        f"{_how_often(right_guesses(epsilon, delta))}."
    )


def percent_at_most(probability: float) -> str:
    """A probability as a percentage, rounded up, with enough decimals to tell it from always."""
    for digits in (2, 4, 6):
        shown = rounded_up(100.0 * probability, digits)
        if shown < 100.0:
            return f"{shown:.{digits}f}%"
    return "100%"


def _how_often(probability: float) -> str:
    percent = percent_at_most(probability)
    return f"every time ({percent})" if percent == "100%" else f"at most {percent} of the time"


def worst_case(epsilon: float, delta: float, records: int, unit: str = "record") -> str:
    """The worst case and how to read it, with no comforting words where the promise protects little."""
    start = f"{guess_sentence(epsilon, delta, whether=whether_used(unit))} {_WORST_CASE.format(unit=unit)}"
    if little_because(epsilon, delta, records) is not None:
        return f"{start}. The promise rules out no more than that."
    return f"{start}; measured attacks on ordinary records do far worse."


def little_because(epsilon: float, delta: float, records: int, unit: str = "record") -> str | None:
    """Why a promise protects little, or None if it protects well."""
    reasons: list[str] = []
    if epsilon > LARGEST_EPSILON:
        reasons.append(f"ε = {exactly(epsilon)} is above {LARGEST_EPSILON:g}")
    # With probability δ everything may be revealed: above 1/n, even publishing a random record keeps the promise.
    if delta > 1.0 / records:
        reasons.append(f"δ = {exactly(delta)} is above 1 / {records:,}, the number of {plural(unit)}")
    return f"{LITTLE}: {' and '.join(reasons)}." if reasons else None
