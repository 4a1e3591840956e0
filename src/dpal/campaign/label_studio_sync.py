"""Label Studio as the place where people label: one project per round, answers taken in once, by whom and when.

Whatever is repeated does nothing twice: projects and tasks are found again by names of their own, and an annotation
enters the inbox under a key made of its number and its last change.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from filelock import FileLock, Timeout

from dpal.campaign.campaign_pool import campaign_pool, checked_records
from dpal.campaign.fingerprints import Contents
from dpal.campaign.guidelines import read_guidelines
from dpal.campaign.inbox import Inbox
from dpal.campaign.intake import answer_entry, questions_of
from dpal.campaign.layout import SYNC_LOCK
from dpal.campaign.reader import Reader
from dpal.campaign.state import State
from dpal.data import Pool
from dpal.data.records import TextRecords
from dpal.errors import CampaignBusy, InvalidArgument
from dpal.labels.answers import Answer, read_answer
from dpal.labels.label_studio import NAME, answer_of, labelling_interface, no_label_of, task_of
from dpal.labels.label_studio_server import LabelStudio
from dpal.labels.people import EXPERT
from dpal.labels.pictures import are_pictures, as_png, picture_of
from dpal.labels.public_names import Names, public_names

# Marks people of that server, who have no link to the page.
SUFFIX = " (Label Studio)"
# Shown where a unit has fewer pictures than the most of them: one transparent pixel.
_NO_PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What one round trip did. Internal, like all numbers about labels."""

    tasks_added: int = 0
    answers: int = 0
    # What could not be taken in, in words: an annotation outside the classes, for example.
    problems: tuple[str, ...] = field(default=(), repr=False)


class LabelStudioSync:
    """The connection of one campaign with its projects on a server."""

    def __init__(self, reader: Reader, server: LabelStudio, open_pool: Callable[[], Pool]) -> None:
        """`open_pool` is called when there are records to show."""
        self.reader, self.server, self._open_pool = reader, server, open_pool
        self.inbox = Inbox(reader.folder)
        with reader.open_store() as store:
            self._key = store.secret()
        self._contents: Contents | None = None

    def sync(self, *, remove: bool = False) -> Synced:
        """Send what is asked, and take what is answered. May be broken off anywhere and repeated.

        One at a time: two would each make what the other is making, and the slower one would put an answer that was
        changed meanwhile after the change.
        """
        lock = FileLock(self.reader.folder / SYNC_LOCK)
        try:
            lock.acquire(blocking=False)
        except Timeout as error:
            raise CampaignBusy(
                "Another process is fetching answers from Label Studio, such as dpal run --wait. Nothing was changed."
            ) from error
        try:
            return self._sync(remove=remove)
        finally:
            lock.release()

    def _sync(self, *, remove: bool) -> Synced:
        state = self.reader.state()
        questions = questions_of(state, self._known_contents)
        names = self._names(state, questions)
        groups = self._groups(state, questions)
        added = answers = 0
        problems: list[str] = []
        projects = self._projects()
        users: dict[int, str] = {}
        for group, asked in enumerate(groups):
            is_open = group not in state.closed and any(self._waits(state, questions[name]) for name in asked)
            mark = self._mark(group)
            if mark not in projects and not is_open:
                continue
            if mark not in projects:
                self._create(state, group, asked, questions)
                projects = self._projects()
            # More than one only where a reply was lost and came true late. People may work in each of them.
            tasks = [task for project in projects[mark] for task in self.server.tasks(project)]
            known = {str(task["data"].get(NAME)) for task in tasks}
            # What was answered elsewhere, or in a project that is gone, is not asked again.
            missing = [
                name for name in asked if names.name_of(name) not in known and self._waits(state, questions[name])
            ]
            if missing and is_open:
                self.server.import_tasks(projects[mark][0], self._tasks(state, missing, questions, names))
                added += len(missing)
            users = users or self.server.users()
            count, wrong = self._take(state, tasks, names, set(asked), users)
            answers, problems = answers + count, problems + wrong
            # Not in the same breath as the last answers: somebody may be changing them.
            if remove and not is_open and not wrong and count == 0:
                for project in projects[mark]:
                    self.server.delete_project(project)
        return Synced(tasks_added=added, answers=answers, problems=tuple(problems))

    def _known_contents(self) -> Contents:
        if self._contents is None:
            self._contents = self.reader.contents()
        return self._contents

    def _names(self, state: State, questions: Mapping[str, tuple[str, ...]]) -> Names:
        by_unit = state.created.unit is not None and state.created.unit["one_label"]
        free = state.created.ids_are_free_of_content and not by_unit
        return public_names(questions, secret=self._key, ids_are_free_of_content=free)

    def _groups(self, state: State, questions: Mapping[str, tuple[str, ...]]) -> list[list[str]]:
        """Each round's questions, in the order of a hash: it tells nothing about scores."""
        question_of = {record: name for name, records in questions.items() for record in records}
        groups: list[list[str]] = []
        for group in state.groups:
            asked = dict.fromkeys(question_of[record] for record in group if record in question_of)
            groups.append(sorted(asked, key=lambda name: hmac.digest(self._key, b"sheet " + name.encode(), "sha256")))
        return groups

    @staticmethod
    def _waits(state: State, records: tuple[str, ...]) -> bool:
        return any(record not in state.answers for record in records)

    def _mark(self, group: int) -> str:
        """By which a project is found again. It says nothing about the campaign."""
        digest = hmac.new(self._key, f"label studio {group}".encode(), hashlib.sha256).hexdigest()
        return f"dpal {digest[:24]}"

    def _projects(self) -> dict[str, list[int]]:
        """Projects by their mark, the oldest first, should a lost reply have led to two."""
        found: dict[str, list[int]] = {}
        for project in sorted(self.server.projects(), key=lambda one: one["id"]):
            found.setdefault(project["description"], []).append(project["id"])
        return found

    def _create(self, state: State, group: int, asked: list[str], questions: Mapping[str, tuple[str, ...]]) -> None:
        pool = self._pool(state)
        pictures, texts = self._shape(state, pool)
        interface = labelling_interface(
            state.created.classes, multi_label=state.created.multi_label, pictures=pictures, texts=texts
        )
        self.server.create_project(
            # Its name is all that other users of the server see.
            title=f"{self.reader.folder.name[:35]} round {group + 1}",
            description=self._mark(group),
            interface=interface,
            instructions=read_guidelines(self.reader.folder).text,
        )

    def _pool(self, state: State) -> Pool:
        return campaign_pool(self._open_pool(), state, self._known_contents(), folder=self.reader.folder)

    def _shape(self, state: State, pool: Pool) -> tuple[int, int]:
        """How many pictures and texts every task has: a public number, whoever has fewer records."""
        unit = state.created.unit
        rows = int(unit["rows"]) if unit is not None and unit["one_label"] else 1
        if isinstance(pool.records, TextRecords):
            return 0, rows * len(pool.records.texts[0])
        return (rows, 0) if are_pictures(pool.records) else (0, 0)

    def _tasks(
        self, state: State, wanted: list[str], questions: Mapping[str, tuple[str, ...]], names: Names
    ) -> Iterator[dict[str, Any]]:
        pool = self._pool(state)
        checked = checked_records(pool, self._known_contents(), folder=self.reader.folder)
        pictures, texts = self._shape(state, pool)
        for name in wanted:
            places = pool.positions(questions[name])
            # People must see exactly the records that the model will be trained on.
            checked.check(places)
            files, shown = [_NO_PICTURE] * pictures, [""] * texts
            if isinstance(pool.records, TextRecords):
                flat = [text for place in places.tolist() for text in pool.records.texts[place]]
                shown[: len(flat)] = flat
            elif pictures:
                for number, place in enumerate(places.tolist()):
                    encoded = base64.b64encode(as_png(picture_of(pool.records, place))).decode()
                    files[number] = f"data:image/png;base64,{encoded}"
            yield task_of(names.name_of(name), files=files, texts=[tuple(shown)] if shown else [])

    def _take(
        self, state: State, tasks: list[dict[str, Any]], names: Names, asked: set[str], users: Mapping[int, str]
    ) -> tuple[int, list[str]]:
        """Put what is new into the inbox; returns how many answers that was, and what could not be taken.

        An annotation that is deleted there stays an answer here: a project that somebody deletes must not take weeks of
        work with it. To change an answer, change the annotation.
        """
        taken, problems, known = 0, list[str](), self.inbox.keys()
        classes, multi_label = state.created.classes, state.created.multi_label
        given = [(task, annotation) for task in tasks for annotation in task["annotations"]]
        # Also where a question has two tasks, what somebody said last counts.
        for task, annotation in sorted(given, key=lambda one: (str(one[1].get("updated_at", "")), one[1]["id"])):
            question = names.id_of(str(task["data"].get(NAME, "")))
            at = str(annotation.get("updated_at", ""))
            # The person is not part of it: an account may be renamed or deleted, and its answers stay the same.
            key = hashlib.sha256(f"{annotation['id']} {at}".encode()).hexdigest()[:48]
            if question not in asked or key in known:
                continue
            try:
                answer = no_label_of(annotation, classes)
                if answer is None:
                    said = answer_of(annotation, classes, multi_label=multi_label)
                    answer = read_answer(said, question, classes, multi_label)
            except (ValueError, InvalidArgument) as error:
                problems.append(f"task {task.get('id')} ({names.name_of(question)}): {error}")
                continue
            self._add(question, answer, annotation, users, key, at)
            taken += 1
        return taken, problems

    def _add(
        self,
        question: str,
        answer: Answer,
        annotation: Mapping[str, Any],
        users: Mapping[int, str],
        key: str,
        at: str,
    ) -> None:
        """Save an answer under a key of its own."""
        user = annotation["completed_by"]
        person = f"{users.get(user, 'someone')}{SUFFIX}"
        # By the account's number, which stays. Without one, nobody can tell whether two answers are one person's.
        account = f"annotation {annotation['id']}" if user is None else f"account {user}"
        who = f"label-studio {hashlib.sha256(account.encode()).hexdigest()[:16]}"
        given = list(answer) if isinstance(answer, tuple) else answer
        body = answer_entry(question, given, "", who=who, role=EXPERT)
        self.inbox.add(body | {"at": at}, person=person, key=key, above=self.reader.known_state().inbox)
