"""The only way to add facts: under the lock, each checked against the state before its commit, and noted after it."""

from collections.abc import Generator
from contextlib import contextmanager

from dpal.campaign.facts import Fact
from dpal.campaign.leftovers import remove_leftovers
from dpal.campaign.lock import only_writer
from dpal.campaign.reader import Reader
from dpal.campaign.rollback_guard import note_newest
from dpal.campaign.state import State, after, fold
from dpal.campaign.store import Store


class Writer:
    """A campaign in the hands of its one writer. What it adds, its reader knows without reading again."""

    def __init__(self, reader: Reader, store: Store) -> None:
        self.folder, self.store = reader.folder, store
        self._reader = reader
        reader.advance(store)
        remove_leftovers(self.folder, self.state)

    @property
    def state(self) -> State:
        """The state after the newest fact. Nothing is read: no one else can write."""
        return self._reader.known_state()

    def add(self, fact: Fact, *, seal: bytes | None = None, unseal: int | None = None) -> int:
        """Record a fact, and with it a sealed key or the erasure of one; returns the fact's number."""
        # A fact that no reader would accept must not get in.
        after(self.state, self.state.last + 1, "", "", fact)
        recorded = self.store.append(fact, after=self._reader.recorded[-1], seal=seal, unseal=unseal)
        self._reader.take(self.store, recorded)
        note_newest(self.folder, recorded)
        return recorded.number

    def state_at(self, number: int) -> State:
        """The state when this fact was the newest."""
        return fold(self._reader.recorded[:number])


@contextmanager
def writing(reader: Reader) -> Generator[Writer]:
    """Take the lock and open the database for writing. A second writer is refused at once."""
    reader.known_state()  # refuses a folder that is not a campaign, before a lock file is made in it
    with only_writer(reader.folder):
        store = Store(reader.folder)
        try:
            yield Writer(reader, store)
        finally:
            store.close()
