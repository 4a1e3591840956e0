"""What a promise takes for granted, in one place for reports and certificates."""

from collections.abc import Sequence

ASSUMPTIONS = (
    "The unit of privacy is one record. Protection is per record; someone with several records is protected less overall.",
    "The promise compares a pool with the same pool in which one record is replaced by a blank (zero-out adjacency). "
    "Against telling two possible contents of a record apart it protects less: with twice the ε, and with δ times 1 + e^ε.",
    "The number of records, their ids, the classes and the plan are public.",
    "Which records are in the initial set is public.",
    "Ids must not encode what a record contains: no names, diagnoses or dates.",
    "Everything released is covered: every model and checkpoint, every training step, and which records were chosen.",
    "Labels, scores, gradients and records stay on the machine that runs the campaign.",
    "Other campaigns on the same records, and any tuning or trial run on them, are not counted here: their ε adds to this one.",
    "A copy of the campaign's folder that is run on is a second campaign, and its ε adds to this one.",
    "Gaussian noise and sums are computed in floating point. What is proven about that and what is assumed is in "
    "docs/maths/floating-point.md.",
    "How long steps take is not covered.",
    "People who label see the records they are given; the promise is about everyone else.",
    "A record that was withdrawn takes no part from then on. What was charged for it before stands, and models trained "
    "before stay as they are.",
)
MEASURED_ROUNDING = (
    "The accountant's own rounding errors (PLD, by Fourier transforms) are measured and charged seven times over; that this "
    "is enough is not proven (docs/maths/privacy-loss.md)."
)


def assumptions_of(*, accountant: str, foreign_code: Sequence[str]) -> list[str]:
    """All assumptions of a campaign: the general ones, its accountant's, and the code in it that is not dpal's."""
    found = [*ASSUMPTIONS, *([MEASURED_ROUNDING] if accountant == "pld" else [])]
    if foreign_code:
        found.append(
            f"Code that is not dpal's took part: {', '.join(foreign_code)}. It is assumed to treat every record by itself "
            "and to write or send nothing of what it sees."
        )
    return found
