"""A campaign as its folder has it: for everyone who reads, and for bringing labels in. Needs no model."""

import hashlib
import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dpal.campaign import faults
from dpal.campaign.config import NAME, read_config
from dpal.campaign.exchange import export_requests, read_answers
from dpal.campaign.facts import Answer, Answered, Closed
from dpal.campaign.ledger import Ledger
from dpal.campaign.lock import only_writer
from dpal.campaign.state import State, WaitForLabels, fold, next_step
from dpal.campaign.status import Status, status_of
from dpal.campaign.store import Store
from dpal.campaign.verification import Verification, verified
from dpal.data import Pool
from dpal.data.opening import open_pool
from dpal.errors import DamagedCampaign, InvalidArgument
from dpal.planning.certify import read_plan
from dpal.planning.plan import Plan, Schedule


class CampaignFolder:
    """The facts of a campaign, and what follows from them."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        with self._store(read_only=True) as store:
            state = fold(store.recorded())
        self._plan_text = json.dumps(state.created.plan)
        if plan_hash(state.created.plan) != state.created.plan_hash:
            raise DamagedCampaign(f"The plan in {self.folder} does not have the hash that was recorded with it.")
        self.plan: Plan = read_plan(self._plan_text)
        self.schedule = Schedule(phases=self.plan.phases, selections=self.plan.selections)

    @contextmanager
    def _store(self, *, read_only: bool = False) -> Generator[Store]:
        store = Store(self.folder, read_only=read_only)
        try:
            yield store
        finally:
            store.close()

    def state(self) -> State:
        """Everything that has happened so far."""
        with self._store(read_only=True) as store:
            return fold(store.recorded())

    def status(self) -> Status:
        """Where the campaign stands."""
        return status_of(self.folder, self.state(), self.plan)

    def verify(self) -> Verification:
        """Recompute every ε from the facts and compare with what was planned."""
        with self._store(read_only=True) as store:
            return verified(self.folder, store, fold(store.recorded()), self._plan_text)

    def ledger(self) -> dict[str, object]:
        """What was charged, for any accountant."""
        state = self.state()
        return Ledger.of(state).to_json(self.plan.setting) | {"ledger_hash": state.last_hash}

    def import_labels(self, file: Path | str, pool: Pool) -> dict[str, int]:
        """Take answers from a table, all or none; says how many were new, corrected and unchanged."""
        with only_writer(self.folder), self._store() as store:
            state = fold(store.recorded())
            asked = {name for group in state.groups for name in group}
            answers = read_answers(Path(file), pool, asked)
            return _record_answers(store, state, Path(file).name, answers)

    def export_labels(self, folder: Path | str, pool: Pool) -> int:
        """Write the records that wait for an answer to a folder; says how many."""
        state = self.state()
        waiting = [name for group in range(len(state.groups)) for name in state.missing(group)]
        if waiting:
            export_requests(pool, waiting, Path(folder))
        return len(waiting)

    def close_round(self) -> int:
        """Go on without the answers that are missing; says how many. They can still come later."""
        with only_writer(self.folder), self._store() as store:
            state = fold(store.recorded())
            step = next_step(state, self.schedule)
            if not isinstance(step, WaitForLabels):
                return 0
            store.append(Closed(group=step.group), after=state.last)
            return len(state.missing(step.group))


def _record_answers(store: Store, state: State, source: str, answers: Mapping[str, Answer]) -> dict[str, int]:
    changed = {name: each for name, each in answers.items() if state.answers.get(name) != each}
    faults.reached("import.checked")
    if changed:
        store.append(Answered(source=source, answers=changed), after=state.last)
    faults.reached("import.recorded")
    new = sum(name not in state.answers for name in changed)
    return {"new": new, "corrected": len(changed) - new, "unchanged": len(answers) - len(changed)}


def plan_hash(document: Mapping[str, object]) -> str:
    """The hash of a plan's document, whatever the order of its fields."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def open_data(folder: Path | str) -> Pool:
    """The pool that a campaign's configuration names."""
    config = read_config(Path(folder) / NAME)
    if config.data is None:
        raise InvalidArgument("the data in campaign.yaml", None, "named; this campaign got its pool in Python")
    return open_pool(config.data.source, config.data.options)
