"""What a promise assumes, in one place for reports and certificates."""

from collections.abc import Sequence

from dpal.planning.promises import WORDS
from dpal.planning.setting import RECORD
from dpal.planning.unit_words import plural

_PER_RECORD = (
    "The unit of privacy is one record: someone with several records is protected less (a certificate says how much).",
    "The promise compares the pool with the same pool in which one record is replaced by a blank (zero-out adjacency).",
)
# What both promises take for granted; each has its own as well (planning/promises.py).
ASSUMPTIONS = (
    "What a record contains is protected less than whether it was used: with twice the ε, and with δ times 1 + e^ε.",
    "Ids do not encode what a record contains: no names, no diagnoses, no dates.",
    "Labels, scores, gradients and records stay on the operator's machines: where the data are, and where it runs.",
    "Other campaigns, and any tuning or trial run on the same records, are not counted here: their ε adds to this one.",
    "Running a copy of the campaign's folder is a second campaign, and its ε adds to this one.",
    "Noise and sums are computed in floating point (docs/maths/floating-point.md: what is proven, what is assumed).",
    "The time that steps take is not covered.",
    "People who label see the records they are given; the promise is about everyone else.",
    "If a record was withdrawn, earlier charges for it stand, and models trained before that are not changed.",
)
MEASURED_ROUNDING = (
    "Rounding errors of the accountant (PLD) were measured and are charged seven times over; a bound is not proven "
    "(docs/maths/privacy-loss.md)."
)
FOREIGN_CODE = "This code is not part of dpal; it is assumed to treat every record separately and to leak nothing:"


def per_unit(unit: str) -> tuple[str, ...]:
    """What is assumed about whom the promise protects."""
    if unit == RECORD:
        return _PER_RECORD
    many = plural(unit)
    return (
        (
            f"The unit of privacy is one {unit}, with all of their records in the pool. Which record belongs to which "
            f"{unit} was named by the operator for every record, by looking at that record alone, and is right."
        ),
        (
            f"The promise compares the pool with the same pool in which all records of one {unit} are blank (zero-out "
            "adjacency)."
        ),
        f"The number of {many} and what they are called in the pool are public; how many records each has is not.",
        f"How many records of one {unit} are used at most was chosen without looking at the records.",
    )


def assumptions_of(*, promise: str, accountant: str, foreign_code: Sequence[str], unit: str) -> list[str]:
    """All assumptions of a campaign: its promise's, the general ones, its accountant's, and code that is not dpal's."""
    assumptions: list[str] = [*WORDS[promise].assumptions, *per_unit(unit), *ASSUMPTIONS]
    if accountant == "pld":
        assumptions.append(MEASURED_ROUNDING)
    if foreign_code:
        assumptions.append(f"{FOREIGN_CODE} {', '.join(foreign_code)}.")
    return assumptions
