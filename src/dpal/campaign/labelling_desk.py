"""What each person who labels may see and say: questions, pictures, answers, progress. Needs no lock and no torch.

Nothing here knows a score or a model. Each person's questions come in an order that was drawn at random once, and only
those that were asked can be reached. An answer is safe in the inbox before it is acknowledged.
"""

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any

from dpal.campaign.campaign_pool import campaign_pool, checked_records, open_data
from dpal.campaign.fingerprints import CheckedRecords, Contents
from dpal.campaign.inbox import Entry, Inbox
from dpal.campaign.intake import Intake, answer_entry, checked_answer, questions_of
from dpal.campaign.reader import Reader
from dpal.campaign.rollback_guard import noted_newest
from dpal.campaign.state import State
from dpal.campaign.status import Status, status_of
from dpal.data import Pool
from dpal.data.deep_images import Window
from dpal.data.records import TextRecords, is_text
from dpal.errors import InvalidArgument, NotForYou
from dpal.labels.agreement import alpha, kappas
from dpal.labels.answers import Answer
from dpal.labels.decisions import DIFFER
from dpal.labels.people import ARBITER, EXPERT, Arrangement, Opinion, Person, order_for, token_of
from dpal.labels.pictures import are_pictures, as_png, picture_of, window_of_pictures
from dpal.labels.public_names import Names, public_names

LONGEST_NOTE = 2000
_KEY = re.compile(r"[A-Za-z0-9_-]{8,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the labelling has come. Internal, like all numbers about labels."""

    asked: int
    decided: int
    differ: int
    # Of each expert: how many questions they have answered, and how many still wait for them.
    answered: Mapping[str, int] = field(repr=False)
    waiting: Mapping[str, int] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A question as a person sees it."""

    name: str
    texts: tuple[tuple[str, ...], ...] = field(repr=False)
    pictures: int
    opinion: Opinion | None = field(repr=False)
    # What others said, for an arbiter: without their names.
    others: tuple[Answer, ...] = field(repr=False)


class LabellingDesk:
    """One campaign's questions. Safe to use from several threads."""

    def __init__(self, folder: Path, *, pool: Pool | None = None) -> None:
        """`pool` is needed where the campaign was made from objects in Python."""
        self.reader, self.folder = Reader(folder), folder
        self.inbox = Inbox(folder)
        self._lock = RLock()
        self._given = pool
        self._stamp: object = None
        self._intake: Intake | None = None
        # Whom each question was given to.
        self._asked: dict[str, tuple[str, ...]] = {}
        # Who was shown which question: whoever has seen one may answer it, also where it is somebody else's by now.
        self._seen: set[tuple[str, str]] = set()
        with self.reader.open_store() as store:
            self.key = store.secret()
        self._names: Names = public_names((), secret=self.key, ids_are_free_of_content=False)
        self._contents: Contents | None = None
        self._opened: tuple[Pool, CheckedRecords] | None = None
        self._refreshed()

    def open_pool(self) -> tuple[Pool, CheckedRecords]:
        """Load the pool and its fingerprints: seconds for a large one, and needed before a record can be shown."""
        state, contents = self.state, self._known_contents()
        pool = open_data(self.reader.config(), folder=self.folder) if self._given is None else self._given
        pool = campaign_pool(pool, state, contents, folder=self.folder)
        self._opened = (pool, checked_records(pool, contents, folder=self.folder))
        return self._opened

    def _known_contents(self) -> Contents:
        if self._contents is None:
            self._contents = self.reader.contents()
        return self._contents

    def _refreshed(self) -> Intake:
        """The campaign as it is now, with what waits in the inbox. Reads only what is new."""
        stamp, newest, known = noted_newest(self.folder), self.inbox.newest(), self._intake
        # An older inbox was put back: what it does not have was not saved.
        is_older = known is not None and newest < known.last and known.last > known.state.inbox
        if known is None or stamp != self._stamp or is_older:
            # The inbox after the facts: what is taken in meanwhile is seen in neither place otherwise.
            state = self.reader.state()
            questions = questions_of(state, self._known_contents)
            if known is None or set(questions) != set(known.questions):
                self._names = self._names_of(state, questions)
            known = Intake(state=state, questions=questions, key=self.key)
            known.settle()
            self._asked = {}
        arrangement = known.arrangement
        for entry in self.inbox.after(known.last) if newest > known.last else ():
            known.take(entry)
        if arrangement != known.arrangement or not self._asked:
            self._asked = {name: known.arrangement.asked(name, self.key) for name in known.questions}
        self._intake, self._stamp = known, stamp
        return known

    def _names_of(self, state: State, questions: Mapping[str, tuple[str, ...]]) -> Names:
        # Names of units always are opaque: people's names are never free of content.
        by_unit = state.created.unit is not None and state.created.unit["one_label"]
        free = state.created.ids_are_free_of_content and not by_unit
        return public_names(questions, secret=self.key, ids_are_free_of_content=free)

    def status(self) -> Status:
        """Where the campaign stands."""
        with self._lock:
            return status_of(self.folder, self._refreshed().state, self.reader.plan)

    @property
    def state(self) -> State:
        """The recorded state as of the last look."""
        with self._lock:
            return self._refreshed().state

    @property
    def arrangement(self) -> Arrangement:
        with self._lock:
            return self._refreshed().arrangement

    def person_with(self, token: str) -> Person | None:
        """Whose link this is, if it is still valid."""
        people = self.arrangement.people
        found = [person for person in people if hmac.compare_digest(token_of(person, self.key), token)]
        return found[0] if found else None

    @property
    def mark(self) -> str:
        """By which browsers tell this campaign from others of its name."""
        return hmac.new(self.key, b"dpal mark", "sha256").hexdigest()[:12]

    def token(self, person: Person) -> str:
        return token_of(person, self.key)

    @property
    def shows(self) -> str:
        """What a record is to a person: a picture, a text, or numbers, of which there is only the name."""
        records = self._ready_pool()[0].records
        return "text" if isinstance(records, TextRecords) else "picture" if are_pictures(records) else "name"

    def _ready_pool(self) -> tuple[Pool, CheckedRecords]:
        with self._lock:
            return self._opened or self.open_pool()

    def queue(self, person: Person) -> tuple[list[str], list[Opinion]]:
        """The names of the questions that wait for this person, in their own order; and what they said before.

        Each of the opinions has the question's name in the place of its own id.
        """
        with self._lock:
            intake = self._refreshed()
            if intake.state.finished:
                waiting: list[str] = []
            elif person.role == ARBITER:
                waiting = [question for question in intake.opinions if self._differ(intake, question)]
            else:
                waiting = [question for question in intake.questions if self._waits_for(intake, question, person)]
            waiting.sort(key=lambda question: order_for(person.name, question, self.key))
            own = (given[person.who] for given in intake.opinions.values() if person.who in given)
            said = [each for each in own if each.answer is not None and intake.questions.get(each.question)]
            said.sort(key=lambda opinion: opinion.number)
            return [self._name(question) for question in waiting], said

    def name_of(self, opinion: Opinion) -> str:
        """What the question of an opinion is called outside."""
        with self._lock:
            return self._name(opinion.question)

    def _name(self, question: str) -> str:
        return self._names.name_of(question)

    def _waits_for(self, intake: Intake, question: str, person: Person) -> bool:
        if not intake.questions[question] or person.name not in self._asked[question]:
            return False
        opinion = intake.opinions.get(question, {}).get(person.who)
        return (opinion is None or opinion.answer is None) and intake.answer(question) is None

    def _differ(self, intake: Intake, question: str) -> bool:
        records = intake.questions.get(question)
        if not records or intake.answer(question) is not None:
            return False
        return intake.decision(question).open_because == DIFFER

    def _visible(self, intake: Intake, person: Person, name: str, *, to_answer: bool = False) -> str:
        """The question of this name, if this person may see it. Otherwise the same error, whatever the reason."""
        question = self._names.id_of(name) if is_text(name) else None
        if question is None or not intake.questions.get(question) or person.role not in (EXPERT, ARBITER):
            raise NotForYou
        answered = person.who in intake.opinions.get(question, {})
        if person.role == ARBITER:
            may = answered or self._differ(intake, question)
        else:
            may = (
                answered or person.name in self._asked[question] or (to_answer and (person.who, question) in self._seen)
            )
        if not may:
            raise NotForYou
        return question

    def shown(self, person: Person, name: str) -> Shown:
        """A question as this person may see it, once its records are found to be the campaign's own."""
        with self._lock:
            intake = self._refreshed()
            question = self._visible(intake, person, name)
            self._seen.add((person.who, question))
            records = intake.questions[question]
            given = intake.opinions.get(question, {})
            opinion = given.get(person.who)
            # In an order that does not tell who said what.
            said = [other.answer for who, other in given.items() if who != person.who and other.answer is not None]
            others = tuple(sorted(said, key=repr))
        pool, checked = self._ready_pool()
        texts: tuple[tuple[str, ...], ...] = ()
        if isinstance(pool.records, TextRecords):
            places = pool.positions(records)
            checked.check(places)
            texts = tuple(pool.records.texts[place] for place in places.tolist())
        return Shown(
            name=name,
            texts=texts,
            pictures=len(records) if self.shows == "picture" else 0,
            opinion=opinion if opinion is not None and opinion.answer is not None else None,
            others=others if person.role == ARBITER else (),
        )

    @property
    def window(self) -> Window | None:
        """Through which images of more than 8 bits are seen, unless somebody chooses another window."""
        return window_of_pictures(self._ready_pool()[0].records)

    def picture(self, person: Person, name: str, number: int, window: Window | None = None) -> bytes:
        """A PNG file of one of the question's records, compared with what the campaign was created with."""
        with self._lock:
            intake = self._refreshed()
            records = intake.questions[self._visible(intake, person, name)]
        if self.shows != "picture" or not 0 <= number < len(records):
            raise NotForYou
        pool, checked = self._ready_pool()
        place = pool.positions([records[number]])
        checked.check(place)
        return as_png(picture_of(pool.records, int(place[0]), window))

    def answer(self, person: Person, name: str, given: object, *, note: str, key: str) -> Entry:
        """Save an answer; None takes an earlier one back. It is on the disk when this returns.

        `key` names this answer: when a lost connection makes a page send it again, it is saved once.
        """
        created = self.state.created
        try:
            answer = checked_answer(given, created.classes, multi_label=created.multi_label)
        except (ValueError, TypeError) as error:
            raise InvalidArgument("the answer", type(given).__name__, "one of the campaign's answers") from error
        if not is_text(note) or len(note) > LONGEST_NOTE:
            raise InvalidArgument("the note", "this note", f"a text of at most {LONGEST_NOTE:,} letters")
        if not _KEY.fullmatch(key):
            raise InvalidArgument("the key", "this key", "8 to 64 letters and digits")
        with self._lock:
            intake = self._refreshed()
            question = self._visible(intake, person, name, to_answer=True)
            plain = list(answer) if isinstance(answer, tuple) else answer
            body = answer_entry(question, plain, note, who=person.who, role=person.role)
            return self.inbox.add(body, person=person.name, key=key, above=intake.state.inbox)

    def progress(self) -> Progress:
        """How far everyone has come."""
        with self._lock:
            intake = self._refreshed()
            open_questions = [question for question, records in intake.questions.items() if records]
            decided = [question for question in open_questions if intake.answer(question) is not None]
            experts, given = intake.arrangement.of_role(EXPERT), list(intake.opinions.values())
            said = {
                person.name: sum(person.who in one and one[person.who].answer is not None for one in given)
                for person in experts
            }
            waiting = {
                person.name: sum(self._waits_for(intake, question, person) for question in open_questions)
                for person in experts
            }
            return Progress(
                asked=len(open_questions),
                decided=len(decided),
                differ=sum(self._differ(intake, question) for question in intake.opinions),
                answered=said,
                waiting=waiting,
            )

    def agreement(self) -> dict[str, Any]:
        """How far experts agree: Krippendorff's α of all, and Cohen's κ of each two. Internal."""
        with self._lock:
            intake = self._refreshed()
            experts = {person.who: person.name for person in intake.arrangement.of_role(EXPERT)}
            answers = {
                question: {
                    experts[who]: opinion.answer
                    for who, opinion in given.items()
                    if who in experts and opinion.answer is not None
                }
                for question, given in intake.opinions.items()
            }
        pairs = [
            {"experts": list(names), "questions": count, "kappa": kappa}
            for names, (count, kappa) in kappas(answers).items()
        ]
        shared = sum(len(given) > 1 for given in answers.values())
        return {"questions": shared, "alpha": alpha(answers), "pairs": pairs}
