"""What waits in the inbox, applied to a campaign's state: by the writer, who records it, and by the page.

Who may answer what was checked when the answer came. What is no longer valid here, such as an answer about a record
that was withdrawn since, is passed over.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from dpal.campaign.facts import Arranged
from dpal.campaign.fingerprints import Contents
from dpal.campaign.inbox import Entry, Inbox
from dpal.campaign.recorded_answers import asked_units, record_answers
from dpal.campaign.state import State
from dpal.campaign.writer import Writer
from dpal.errors import InvalidArgument
from dpal.labels.answers import Answer, answer_from_json, is_answer
from dpal.labels.decisions import Decision, arbiters_answer, decided
from dpal.labels.people import ARBITER, Arrangement, Opinion, Person

PAGE = "labelling page"
ANSWER, ARRANGEMENT = "answer", "arrangement"
_SETTINGS = ("see", "overlap", "rule", "operator")


def answer_entry(question: str, answer: object, note: str, *, who: str, role: str) -> dict[str, Any]:
    """An answer as an entry of the inbox, with the person's identity and role. None takes an earlier one back."""
    return {"kind": ANSWER, "question": question, "answer": answer, "note": note, "who": who, "role": role}


def checked_answer(given: object, classes: tuple[str, ...], *, multi_label: bool) -> Answer | None:
    """An answer as the page sends it: a class's number, one target per class, or a word for no label. Else ValueError.

    By number, so that a class called skip is not mistaken for skipping. None takes an answer back.
    """
    if given is None:
        return None
    try:
        answer = answer_from_json(given)
    except OverflowError as error:
        raise ValueError("a number without end") from error
    if not is_answer(answer, classes, multi_label):
        raise ValueError(given)
    return answer


def arrangement_entry(**change: object) -> dict[str, Any]:
    """A change of who labels: add (a person), renew or remove (a name), or see, overlap, rule and operator."""
    return {"kind": ARRANGEMENT, **change}


def rearranged(arrangement: Arrangement, change: Mapping[str, Any]) -> Arrangement:
    """The arrangement after a change; one that cannot be is an error."""
    if "add" in change:
        person = Person(**change["add"])
        if any(person.name.casefold() == other.name.casefold() for other in arrangement.people):
            raise InvalidArgument("the name", person.name, "of nobody who is there already")
        return arrangement.with_person(person)
    if "remove" in change:
        return arrangement.without(change["remove"])
    if "renew" in change:
        person = arrangement.person(change["renew"])
        if person is None:
            return arrangement
        return arrangement.with_person(replace(person, generation=person.generation + 1))
    return replace(arrangement, **{name: change[name] for name in _SETTINGS if name in change})


@dataclass(kw_only=True)
class Intake:
    """Entries applied one after the other: who labels then, what everyone said, and which answers count."""

    state: State = field(repr=False)
    # The records of each question.
    questions: Mapping[str, tuple[str, ...]] = field(repr=False)
    key: bytes = field(repr=False)
    arrangement: Arrangement = field(init=False)
    opinions: dict[str, dict[str, Opinion]] = field(init=False, repr=False)
    # Of records whose answer changes; None: it has none any more.
    changes: dict[str, Answer | None] = field(init=False, repr=False)
    said: list[Opinion] = field(init=False, repr=False)
    last: int = field(init=False)

    def __post_init__(self) -> None:
        self.arrangement, self.opinions = self.state.arrangement, dict(self.state.opinions)
        self.changes, self.said, self.last = {}, [], self.state.inbox

    def take(self, entry: Entry) -> None:
        """Apply one entry. What is not valid is passed over."""
        self.last = entry.number
        if entry.body.get("kind") == ARRANGEMENT:
            # Two people may have changed it at the same moment: what cannot be is passed over.
            with suppress(InvalidArgument, TypeError, KeyError):
                self.arrangement = rearranged(self.arrangement, entry.body)
            self.settle()
            return
        opinion = self._opinion(entry)
        if opinion is None:
            return
        question = opinion.question
        self.opinions[question] = {**self.opinions.get(question, {}), opinion.who: opinion}
        self.said.append(opinion)
        self._decide(question, by_arbiter=opinion.role == ARBITER)

    def settle(self) -> None:
        """Decide what is open: others may be asked now, and another rule may hold. What was decided stays."""
        for question in self.opinions:
            is_open = bool(self.questions.get(question)) and self.answer(question) is None
            if is_open and self.decision(question).answer is not None:
                self._decide(question)

    def _opinion(self, entry: Entry) -> Opinion | None:
        question, created = entry.body.get("question"), self.state.created
        if not isinstance(question, str) or not self.questions.get(question):
            return None
        try:
            answer = checked_answer(entry.body.get("answer"), created.classes, multi_label=created.multi_label)
        except ValueError:
            return None
        note = str(entry.body.get("note", ""))
        # When it was given, which may be before it came here.
        at = str(entry.body.get("at") or entry.at)
        return Opinion(
            number=entry.number,
            at=at,
            person=entry.person,
            who=str(entry.body.get("who", "")),
            role=str(entry.body.get("role", "")),
            question=question,
            answer=answer,
            note=note,
        )

    def decision(self, question: str) -> Decision:
        """What the people's answers to a question come to."""
        asked = self.arrangement.asked(question, self.key)
        return decided(self.opinions.get(question, {}), asked, self.arrangement)

    def answer(self, question: str) -> Answer | None:
        """The answer that counts for a question now; None unless all of its records have one."""
        answers = [self.changes.get(name, self.state.answers.get(name)) for name in self.questions[question]]
        return None if None in answers else answers[0]

    def _decide(self, question: str, *, by_arbiter: bool = False) -> None:
        """An answer from a file stays, unless an arbiter speaks; it is back when the arbiter's answer is taken back."""
        decision, arbiters = self.decision(question).answer, arbiters_answer(self.opinions[question])
        for name in self.questions[question]:
            filed = self.state.filed.get(name)
            if filed is None:
                self.changes[name] = decision
            elif by_arbiter:
                self.changes[name] = filed if arbiters is None else arbiters


def questions_of(state: State, contents: Callable[[], Contents]) -> dict[str, tuple[str, ...]]:
    """Every question that was asked, and its records without those withdrawn.

    `contents` are needed only where people give one label for all records of a unit.
    """
    unit = state.created.unit
    units = asked_units(state, contents()) if unit is not None and unit["one_label"] else {}
    everything = units or {name: (name,) for group in state.groups for name in group}
    return {name: tuple(each for each in ids if each not in state.withdrawn) for name, ids in everything.items()}


def take_in(writer: Writer, contents: Callable[[], Contents]) -> int:
    """Record what waits in the inbox; returns how many entries. Under the writer's lock, like all facts."""
    entries = Inbox(writer.folder).after(writer.state.inbox)
    for batch in (*_batches(entries), []) if entries else ():
        questions = questions_of(writer.state, contents)
        intake = Intake(state=writer.state, questions=questions, key=writer.store.secret())
        intake.settle()
        if batch and batch[0].body.get("kind") == ARRANGEMENT:
            _record(writer, intake)
            intake.take(batch[0])
            writer.add(Arranged(**intake.arrangement.to_json(), inbox=intake.last))
            continue
        for entry in batch:
            intake.take(entry)
        _record(writer, intake)
    return len(entries)


def _record(writer: Writer, intake: Intake) -> None:
    known = writer.state.answers
    if intake.last > writer.state.inbox or any(known.get(name) != answer for name, answer in intake.changes.items()):
        record_answers(writer, intake.changes, source=PAGE, opinions=intake.said, inbox=intake.last)


def _batches(entries: Iterable[Entry]) -> list[list[Entry]]:
    """Answers together, and each arrangement by itself: it becomes a fact of its own, in its place."""
    batches: list[list[Entry]] = []
    for entry in entries:
        is_arrangement = entry.body.get("kind") == ARRANGEMENT
        if is_arrangement or not batches or batches[-1][0].body.get("kind") == ARRANGEMENT:
            batches.append([entry])
        else:
            batches[-1].append(entry)
    return batches
