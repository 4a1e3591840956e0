"""The people who label: who they are, who sees which question, and how many answers a question needs.

Who is asked depends on a key, the question and the arrangement alone: never on other questions or answers, so that no
record's label depends on another record.
"""

import hashlib
import hmac
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

from dpal.errors import InvalidArgument

EXPERT, ARBITER, OFFICER = "expert", "arbiter", "officer"
ROLES = (EXPERT, ARBITER, OFFICER)
# Everyone answers every question, or the questions are split among the experts.
EVERYONE, SPLIT = "everyone", "split"
MAJORITY, UNANIMOUS = "majority", "unanimous"
_LONGEST_NAME = 60
_FRACTION = 2**64


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Someone with a link of their own. An expert labels, an arbiter decides where experts differ, an officer reads."""

    name: str
    role: str = EXPERT
    # A new one makes earlier links useless.
    generation: int = 0
    # Drawn when the person is added: someone of the same name later is somebody else.
    identity: int = 0

    @property
    def who(self) -> str:
        """By which their answers are known."""
        return f"{self.identity:08x}"

    def __post_init__(self) -> None:
        if not self.name.strip() or self.name != self.name.strip() or not self.name.isprintable():
            raise InvalidArgument("the name of a person", self.name, "a name such as 'Dr. Okafor'")
        if len(self.name) > _LONGEST_NAME:
            raise InvalidArgument("the name of a person", self.name, f"at most {_LONGEST_NAME} letters long")
        if self.role not in ROLES:
            raise InvalidArgument("the role of a person", self.role, f"one of {', '.join(ROLES)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """Who labels, who sees what, and by which rule several answers become one label."""

    people: tuple[Person, ...] = ()
    see: str = SPLIT
    # The share of questions that two experts answer, where questions are split.
    overlap: float = 0.0
    rule: str = MAJORITY
    # A new one makes earlier links of whoever runs the campaign useless.
    operator: int = 0

    def __post_init__(self) -> None:
        if self.see not in (EVERYONE, SPLIT):
            raise InvalidArgument("who sees what", self.see, f"{EVERYONE} or {SPLIT}")
        if isinstance(self.overlap, bool) or not 0 <= self.overlap <= 1 or math.isnan(self.overlap):
            raise InvalidArgument("the overlap", self.overlap, "a share from 0 to 1")
        if self.rule not in (MAJORITY, UNANIMOUS):
            raise InvalidArgument("the rule", self.rule, f"{MAJORITY} or {UNANIMOUS}")
        names = [person.name for person in self.people]
        if len({name.casefold() for name in names}) < len(names):
            raise InvalidArgument("the people", ", ".join(names), "all of different names")

    def of_role(self, role: str) -> tuple[Person, ...]:
        return tuple(person for person in self.people if person.role == role)

    def person(self, name: str) -> Person | None:
        """The person of this name, if there is one now."""
        return next((person for person in self.people if person.name == name), None)

    def with_person(self, person: Person) -> "Arrangement":
        """The arrangement with a person more, or with this one in the place of the person of exactly that name."""
        others = tuple(each for each in self.people if each.name != person.name)
        return replace(self, people=(*others, person))

    def without(self, name: str) -> "Arrangement":
        return replace(self, people=tuple(person for person in self.people if person.name != name))

    def asked(self, question: str, key: bytes) -> tuple[str, ...]:
        """The experts who answer this question, by name: the same ones for the same key, question and people."""
        ranked = sorted(
            (person.name for person in self.of_role(EXPERT)), key=lambda name: _drawn(key, "asked", question, name)
        )
        if self.see == EVERYONE:
            return tuple(ranked)
        is_shared = _drawn(key, "overlap", question) < self.overlap * _FRACTION
        return tuple(ranked[: 2 if is_shared else 1])

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "people": tuple(asdict(person) for person in self.people)}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> "Arrangement":
        people = tuple(Person(**person) for person in document["people"])
        settings = {name: document[name] for name in ("see", "overlap", "rule", "operator")}
        return Arrangement(people=people, **settings)

    def in_words(self) -> str:
        """The rule by which a record gets its one label, for people."""
        if self.see == EVERYONE:
            who = "every expert answers every question"
        elif self.overlap == 0:
            who = "each question goes to one expert"
        else:
            who = f"each question goes to one expert, and {self.overlap:.0%} of them to two"
        agree = "most answers that name a label agree" if self.rule == MAJORITY else "all answers agree"
        return f"{who}; a label counts where {agree}, otherwise an arbiter decides"


def order_for(person: str, question: str, key: bytes) -> int:
    """A place in this person's order of questions, drawn at random once: no order tells anything about a record."""
    return _drawn(key, "order", question, person)


def token_of(person: Person, key: bytes) -> str:
    """What a person's link holds. It cannot be guessed, and a new generation makes another one."""
    return _digest(key, "link", person.name, person.role, str(person.generation), person.who).hex()


def _drawn(key: bytes, *words: str) -> int:
    return int.from_bytes(_digest(key, *words)[:8], "big")


def _digest(key: bytes, *words: str) -> bytes:
    text = b"".join(b"%d:%b" % (len(word.encode()), word.encode()) for word in ("dpal people", *words))
    return hmac.new(key, text, hashlib.sha256).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What a person said about a question. None: they took their answer back."""

    number: int
    at: str
    # Their name, the identity behind it, and their role at the time.
    person: str
    who: str
    role: str
    question: str
    answer: int | tuple[float, ...] | str | None = field(repr=False)
    note: str = field(repr=False, default="")

    def to_json(self) -> dict[str, Any]:
        answer = list(self.answer) if isinstance(self.answer, tuple) else self.answer
        return asdict(self) | {"answer": answer}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> "Opinion":
        answer: Any = document["answer"]
        if isinstance(answer, list):
            answer = tuple(float(target) for target in cast("list[float]", answer))
        return Opinion(**(dict(document) | {"answer": answer}))
