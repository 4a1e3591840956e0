"""What a promise takes for granted, in one place for reports and certificates."""

from collections.abc import Sequence

ASSUMPTIONS = (
    "The unit of privacy is one record: someone with several records is protected less overall.",
    "The promise compares the pool with one in which a record is replaced by a blank (zero-out adjacency).",
    "Which of two contents a record has is protected less than whether it was used: twice the ε, δ times 1 + e^ε.",
    "The number of records, their ids, the classes and the plan are public, and so is who is in the initial set.",
    "Ids do not encode what a record contains: no names, no diagnoses, no dates.",
    "Everything released is covered: every model and checkpoint, every training step, and which records were chosen.",
    "Labels, scores, gradients and records stay on the machine that runs the campaign.",
    "Other campaigns, and any tuning or trial run on the same records, are not counted here: their ε adds to this one.",
    "A copy of the campaign's folder that is run on is a second campaign, and its ε adds to this one.",
    "Noise and sums are computed in floating point (docs/maths/floating-point.md: what is proven, what is assumed).",
    "How long steps take is not covered.",
    "People who label see the records they are given; the promise is about everyone else.",
    "Where a record was withdrawn, what was charged for it before stands, and models trained before stay as they are.",
)
MEASURED_ROUNDING = (
    "Rounding errors of the accountant (PLD) are measured and charged seven times over, not proven "
    "(docs/maths/privacy-loss.md)."
)
FOREIGN_CODE = "This code is not dpal's, and is assumed to treat every record by itself and to leak nothing:"


def assumptions_of(*, accountant: str, foreign_code: Sequence[str]) -> list[str]:
    """All assumptions of a campaign: the general ones, its accountant's, and the code in it that is not dpal's."""
    found = [*ASSUMPTIONS, *([MEASURED_ROUNDING] if accountant == "pld" else [])]
    return [*found, f"{FOREIGN_CODE} {', '.join(foreign_code)}."] if foreign_code else found
