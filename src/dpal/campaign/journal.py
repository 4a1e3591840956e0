"""The only way to add facts: each is checked against the state before it is committed, and noted after."""

from pathlib import Path

from dpal.campaign.facts import Fact
from dpal.campaign.head import noted, remember, require_not_behind
from dpal.campaign.state import State, after, fold
from dpal.campaign.store import Store
from dpal.campaign.tidying import tidy


class Journal:
    """The facts of a campaign in the hands of its one writer."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder, self.store = folder, store
        note = noted(folder)
        self._recorded = store.recorded()
        require_not_behind(folder, note, self._recorded)
        self.state: State = fold(self._recorded)
        tidy(folder, self.state)

    def add(self, fact: Fact, *, seal: bytes | None = None, unseal: int | None = None) -> int:
        """Record a fact, and with it a sealed key or the erasure of one; says its number."""
        # A fact that nobody could read afterwards must not get in.
        after(self.state, self.state.last + 1, "", "", fact)
        recorded = self.store.append(fact, after=self.state.last, seal=seal, unseal=unseal)
        self._recorded.append(recorded)
        self.state = after(self.state, recorded.number, recorded.at, recorded.hash, fact)
        remember(self.folder, self._recorded)
        return recorded.number

    def state_at(self, number: int) -> State:
        """The state when this fact was the newest."""
        return fold(self._recorded[:number])
