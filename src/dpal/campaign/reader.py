"""Reading a campaign: its facts, read and verified once, and what follows from them. Needs no data and no model."""

import hashlib
import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import zip_longest
from pathlib import Path

from dpal.campaign.changed_config import current_config
from dpal.campaign.config import CampaignConfig
from dpal.campaign.fingerprints import Contents
from dpal.campaign.large_contents import asked_contents
from dpal.campaign.ledger import Ledger
from dpal.campaign.rollback_guard import noted_newest, require_not_behind
from dpal.campaign.state import State, after, fold
from dpal.campaign.status import Status, status_of
from dpal.campaign.store import Recorded, Store
from dpal.data.records import file_stamp
from dpal.errors import DamagedCampaign
from dpal.labels.public_names import Names, public_names
from dpal.planning.plan import Plan, Schedule, stated_plan


class Reader:
    """The facts of a campaign. The first use reads the whole chain; later ones read only what was added since.

    For one thread at a time.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder).absolute()
        self._recorded: list[Recorded] = []
        self._state: State | None = None
        # Of the database's file when it was last read or written here.
        self._stamp = ""

    @contextmanager
    def open_store(self) -> Generator[Store]:
        """The database for reading, once all its facts are known here."""
        store = Store(self.folder, read_only=True)
        try:
            self.advance(store)
            yield store
        finally:
            store.close()

    def advance(self, store: Store) -> State:
        """Read the facts that are new. A database that is behind, or has other facts than before, is refused."""
        newest, stamp = noted_newest(self.folder), file_stamp(store.path)
        if self._state is not None and stamp == self._stamp:
            new, known, state = store.recorded(after=self._recorded[-1]), self._recorded, self._state
        else:
            # Written by someone else since: all facts are read, and those that were known must be among them.
            new, known, state = store.recorded(), [], None
            _require_the_same(store.path, self._recorded, new)
        recorded = [*known, *new]
        require_not_behind(self.folder, newest, recorded)
        state = fold(new, start=state)
        if plan_hash(state.created.plan) != state.created.plan_hash:
            raise DamagedCampaign(f"The plan in {self.folder} does not have the hash that was recorded with it.")
        self._state, self._recorded, self._stamp = state, recorded, stamp
        return state

    def take(self, store: Store, recorded: Recorded) -> None:
        """One more fact, from the writer that has just committed it."""
        state = after(self.known_state(), recorded.number, recorded.at, recorded.hash, recorded.fact)
        # In one statement, so that an interrupt does not leave half of it.
        self._state, self._recorded, self._stamp = state, [*self._recorded, recorded], file_stamp(store.path)

    def read_again(self) -> None:
        """Read the whole chain from the disk at the next use. What is known now must still be in it."""
        self._stamp = ""

    @property
    def recorded(self) -> Sequence[Recorded]:
        """The facts as of the last reading."""
        if not self._recorded:
            self.state()
        return self._recorded

    def known_state(self) -> State:
        """The state as of the last reading."""
        return self.state() if self._state is None else self._state

    def state(self) -> State:
        """Everything that has happened so far."""
        with self.open_store():
            return self.known_state()

    @cached_property
    def plan(self) -> Plan:
        """The plan as it was recorded. Running and verifying certify it again."""
        return stated_plan(self.known_state().created.plan)

    @cached_property
    def schedule(self) -> Schedule:
        """The plan's phases and selections."""
        return self.plan.schedule

    def status(self) -> Status:
        """Where the campaign stands."""
        return status_of(self.folder, self.state(), self.plan)

    def config(self) -> CampaignConfig:
        """The configuration that counts now."""
        return current_config(self.folder, self.known_state().settings)

    def ledger(self) -> dict[str, object]:
        """What was charged, for any accountant."""
        state = self.state()
        is_private = status_of(self.folder, state, self.plan).is_private
        facts = {"ledger_hash": state.last_hash, "is_private": is_private}
        return Ledger.of(state).to_json(self.plan.setting) | facts

    def contents(self) -> Contents:
        """Ids and fingerprints of the records that the campaign was created with. Never to be released."""
        with self.open_store() as store:
            state = self.known_state()
            if state.created.large:
                # Only of those that were asked for: the others are known by their row groups.
                return asked_contents(self.folder, state, store.secret())
            return Contents.read(self.folder, key=store.secret(), expected=self.known_state().created.contents)

    def names(self, contents: Contents) -> Names:
        """What the campaign's records are called outside, including those that were withdrawn."""
        free = self.known_state().created.ids_are_free_of_content
        return public_names(contents.ids, secret=contents.key, ids_are_free_of_content=free)

    def unit_names(self, contents: Contents) -> Names:
        """What the campaign's units are called outside. Ids may be declared free of content, names of people never."""
        return public_names(dict.fromkeys(contents.units or ()), secret=contents.key, ids_are_free_of_content=False)


def _require_the_same(path: Path, known: Sequence[Recorded], read: Sequence[Recorded]) -> None:
    for before, now in zip_longest(known, read[: len(known)]):
        if now is None or before.hash != now.hash:
            raise DamagedCampaign(
                f"Fact {before.number} in {path} is missing or different from before: someone replaced or changed the "
                "database. Restore the campaign's folder from a backup. Nothing was changed."
            )


def plan_hash(document: Mapping[str, object]) -> str:
    """The hash of a plan's document, whatever the order of its fields."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
