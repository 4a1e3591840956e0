"""What an ε means: how far a suspicion can grow, what several records of one person have, and what others use."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from dpal.errors import InvalidArgument
from dpal.privacy import checks
from dpal.privacy.group_privacy import group_delta, record_delta
from dpal.reports.plain_words import exactly, little_because, percent_at_most, worst_case

EPSILONS = (0.1, 1.0, 2.0, 4.0, 8.0, 16.0)
EVEN, RARE = 0.5, 0.01
_ALLOWED = "a number above 0 and at most 1,000,000, and best below 10: larger ones protect little"
_LARGEST_EPSILON = 1e6
# For an ε as it was typed: times a number of records with every digit, and three digits on the safe side.
_EXACT = Context(prec=100)
_UP, _DOWN = Context(prec=3, rounding=ROUND_CEILING), Context(prec=3, rounding=ROUND_FLOOR)

NOT_SAID = (
    (
        "It is a limit, not a forecast: it holds against someone who knows every other record, sees every step of "
        "training and asks about the most exposed record. Attacks made for the purpose have come close "
        "(arXiv:2101.04535)."
    ),
    (
        "It says nothing about people in general. If the data show that smoking causes cancer, the model may say so "
        "about a smoker who is in no record."
    ),
    (
        "It does not cover people who see the records or the campaign's folder, nor anything else done with the same "
        "records: every use has its own ε, and they add up."
    ),
    (
        "It compares a record with a blank. To tell two possible contents of a record apart, the limit is twice the ε, "
        "with a far larger δ."
    ),
)

HOW_TO_CHOOSE = (
    "Start from the harm: what would happen to someone if it became known that their record was used?",
    "Then ask who could try: anyone who gets the model may. The table says how far their suspicion could grow.",
    "Count the records of one person (--records-per-person), and choose δ well below 1 / number of records.",
    "Rehearse on a public stand-in: dpal rehearse CONFIG --epsilons 1,2,4,8. Take the smallest ε that is useful.",
    "Write down the ε, the reason, and who agreed.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedEpsilon:
    """An ε that somebody has published, and whom it protects."""

    who: str
    purpose: str
    epsilon: str
    protects: str
    source: str


PUBLISHED = (
    PublishedEpsilon(
        who="US Census Bureau",
        purpose="2020 redistricting data",
        epsilon="19.61 (17.14 persons, 2.47 housing units)",
        protects="one person or housing unit",
        source="census.gov, press release of 9 June 2021",
    ),
    PublishedEpsilon(
        who="Apple",
        purpose="statistics from phones and computers",
        epsilon="2 to 16 per use and day",
        protects="one user for one day",
        source="desfontain.es/blog/real-world-differential-privacy.html, arXiv:1709.02753",
    ),
    PublishedEpsilon(
        who="Google",
        purpose="language models of the keyboard Gboard",
        epsilon="0.994 to 13.69, δ = 1e-10",
        protects="everything that one user typed",
        source="research.google, Advances in private training (2024), arXiv:2305.18465",
    ),
    PublishedEpsilon(
        who="Research",
        purpose="image classification, CIFAR-10 and ImageNet",
        epsilon="0.5 to 8",
        protects="one image",
        source="arXiv:2204.13650",
    ),
)

ADVICE = (
    "Researchers at Google call ε = 1 strong and ε = 10 reasonable, with a small δ (research.google, 2024).",
    (
        "NIST asks to judge ε together with what it rests on: how the data were collected, who is trusted, and how "
        "secure the system is (SP 800-226, 2025)."
    ),
    "These figures protect different things from different people. That others use an ε does not make it safe.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstCase:
    """The most that a suspicion can grow to, from one half and from one in a hundred."""

    epsilon: float
    from_even: float
    from_rare: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralRecords:
    """What anyone with so many records has, and what each record would need for them to have the promise itself."""

    records: int
    epsilon: float
    delta: float
    epsilon_per_record: float
    delta_per_record: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonExplanation:
    """Everything that can be said about one ε and δ before there is a plan."""

    epsilon: float
    delta: float
    pool_size: int | None
    protects_little: str | None
    worst_cases: tuple[WorstCase, ...]
    several_records: SeveralRecords | None

    @property
    def worst_case(self) -> str:
        return worst_case(self.epsilon, self.delta, self.pool_size or 1)

    @property
    def rare_suspicion(self) -> str:
        """The same for a suspicion that is unlikely at first: for most people the case that matters."""
        grown = percent_at_most(largest_belief(self.epsilon, self.delta, RARE))
        return f"Someone who thinks it 1% likely (1 in 100) could come to think it at most {grown} likely."

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "published": [asdict(entry) for entry in PUBLISHED]}


def explain_epsilon(
    *, epsilon: float, delta: float, pool_size: int | None = None, records_per_person: int | None = None
) -> EpsilonExplanation:
    """What a promise of (ε, δ) for one record means; impossible arguments are refused."""
    if not 0 < checks.number("epsilon", epsilon, _ALLOWED) <= _LARGEST_EPSILON:
        raise InvalidArgument("epsilon", epsilon, _ALLOWED)
    delta = checks.open_probability("delta", delta)
    if pool_size is not None:
        _require_whole("pool_size", pool_size, least=1)
        if delta > 1.0 / pool_size:
            allowed = (
                f"at most 1 / {pool_size:,}, the number of records, and better far below it: above it, even publishing "
                "one record picked at random would keep the promise"
            )
            raise InvalidArgument("delta", delta, allowed)
    if records_per_person is not None:
        _require_whole("records_per_person", records_per_person, least=1)
        if pool_size is not None and records_per_person > pool_size:
            allowed = f"at most {pool_size:,}, the number of records in the pool"
            raise InvalidArgument("records_per_person", records_per_person, allowed)
    return EpsilonExplanation(
        epsilon=epsilon,
        delta=delta,
        pool_size=pool_size,
        protects_little=little_because(epsilon, delta, pool_size or 1),
        worst_cases=worst_cases(sorted({*EPSILONS, epsilon}), delta),
        several_records=None if records_per_person is None else several_records(epsilon, delta, records_per_person),
    )


def _require_whole(name: str, value: int, *, least: int) -> None:
    if checks.count(name, value) < least:
        raise InvalidArgument(name, value, f"a whole number of at least {least}")


def largest_belief(epsilon: float, delta: float, prior: float) -> float:
    """How likely someone can come to think that a record was used, if they thought it as likely as `prior` before.

    δ + (1 − δ) · B with B = p e^ε / (p e^ε + 1 − p): as if with probability δ everything were revealed
    (docs/maths/odds.md). For p = 1/2 this is the share of right guesses.
    """
    doubt = (1.0 - prior) * math.exp(-epsilon) / (prior + (1.0 - prior) * math.exp(-epsilon))
    return 1.0 - (1.0 - delta) * doubt


def worst_cases(epsilons: Sequence[float], delta: float) -> tuple[WorstCase, ...]:
    return tuple(
        WorstCase(
            epsilon=epsilon,
            from_even=largest_belief(epsilon, delta, EVEN),
            from_rare=largest_belief(epsilon, delta, RARE),
        )
        for epsilon in epsilons
    )


def several_records(epsilon: float, delta: float, records: int) -> SeveralRecords:
    """Both directions of group privacy, from ε and δ alone. All but the ε together has three digits, safely rounded."""
    typed, number = Decimal(repr(epsilon)), Decimal(records)
    return SeveralRecords(
        records=records,
        epsilon=float(_EXACT.multiply(typed, number)),
        delta=float(_UP.plus(Decimal(group_delta(epsilon, delta, records)))),
        epsilon_per_record=float(_DOWN.divide(typed, number)),
        delta_per_record=float(_DOWN.plus(Decimal(record_delta(epsilon, delta, records)))),
    )


def several_sentences(explanation: EpsilonExplanation) -> list[str]:
    """What k records of one person mean, and what to plan with instead."""
    several = explanation.several_records
    if several is None:
        example = f"dpal explain --epsilon {exactly(explanation.epsilon)} --records-per-person 5"
        return [f"Someone with several records is protected less. How much: {example}"]
    if several.records == 1:
        return ["The promise is for one record, and so for everyone who has one record only."]
    return [_together(several, explanation.pool_size), _instead(several, explanation)]


def _together(several: SeveralRecords, pool_size: int | None) -> str:
    start = (
        f"The promise is for one record. With {several.records:,} records, someone has ε = {exactly(several.epsilon)}"
    )
    if several.delta >= 1.0:
        return f"{start} with a δ of 1 or more, and such a δ promises nothing to them."
    grown = percent_at_most(largest_belief(several.epsilon, several.delta, EVEN))
    little = little_because(several.epsilon, several.delta, pool_size or 1)
    sentence = (
        f"{start}, δ = {exactly(several.delta)}: a suspicion of 50% that their records were used can grow to at most "
        f"{grown}."
    )
    return sentence if little is None else f"{sentence} {little}"


def _instead(several: SeveralRecords, explanation: EpsilonExplanation) -> str:
    promise = f"ε = {exactly(explanation.epsilon)}, δ = {exactly(explanation.delta)}"
    if explanation.protects_little is not None:
        return "Choose a smaller ε first."
    if several.delta_per_record == 0.0:
        return f"No plan can promise {promise} to someone with so many records: keep fewer records of each person."
    smaller = f"ε = {exactly(several.epsilon_per_record)} and δ = {exactly(several.delta_per_record)}"
    return (
        f"To promise {promise} to anyone with up to {several.records:,} records, plan with {smaller} for each record, "
        "or keep fewer records of each person."
    )
