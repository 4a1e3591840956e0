"""How far experts agree, beyond chance: Cohen's κ of two, Krippendorff's α of any number. Internal: it is about labels.

J. Cohen (1960), A coefficient of agreement for nominal scales; K. Krippendorff (2011), Computing Krippendorff's
alpha-reliability, for nominal data.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations

# What each person said, by question.
Answers = Mapping[str, Mapping[str, Hashable]]


def cohens_kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> float | None:
    """Agreement of two people on what both answered; None where that is nothing, or chance alone agrees fully."""
    if not pairs:
        return None
    count = len(pairs)
    agreed = sum(first == second for first, second in pairs) / count
    first, second = (Counter(side) for side in zip(*pairs, strict=True))
    by_chance = sum(first[value] * second[value] for value in first) / count**2
    return None if by_chance == 1 else (agreed - by_chance) / (1 - by_chance)


def krippendorffs_alpha(by_question: Sequence[Sequence[Hashable]]) -> float | None:
    """Agreement over questions with any number of answers; those with one answer say nothing.

    None where there is nothing to compare, or all answers are the same.
    """
    pairable = [values for values in by_question if len(values) > 1]
    totals = Counter(value for values in pairable for value in values)
    count = sum(totals.values())
    expected = count**2 - sum(number**2 for number in totals.values())
    if count < 2 or expected == 0:
        return None
    observed = sum(
        (len(values) ** 2 - sum(number**2 for number in Counter(values).values())) / (len(values) - 1)
        for values in pairable
    )
    return 1 - (count - 1) * observed / expected


def kappas(answers: Answers) -> dict[tuple[str, str], tuple[int, float | None]]:
    """For each two people with questions in common: how many, and their κ."""
    people = sorted({person for given in answers.values() for person in given})
    result: dict[tuple[str, str], tuple[int, float | None]] = {}
    for first, second in combinations(people, 2):
        pairs = [(given[first], given[second]) for given in answers.values() if first in given and second in given]
        if pairs:
            result[first, second] = (len(pairs), cohens_kappa(pairs))
    return result


def alpha(answers: Answers) -> float | None:
    """Krippendorff's α over all questions."""
    return krippendorffs_alpha([tuple(given.values()) for given in answers.values()])
