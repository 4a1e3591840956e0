"""A campaign as its folder has it: for everyone who reads, and for bringing labels in. Needs no model."""

import hashlib
import json
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dpal.campaign import faults
from dpal.campaign.config import NAME, read_config
from dpal.campaign.exchange import export_requests, read_answers
from dpal.campaign.facts import Answered, Closed
from dpal.campaign.giving_up import Abandoned, give_up
from dpal.campaign.head import noted, require_not_behind
from dpal.campaign.journal import Journal
from dpal.campaign.ledger import Ledger
from dpal.campaign.lock import only_writer, writer_of
from dpal.campaign.state import State, WaitForLabels, fold, next_step
from dpal.campaign.status import Status, status_of
from dpal.campaign.store import Recorded, Store
from dpal.campaign.tidying import is_tidy
from dpal.campaign.verification import Verification, verified
from dpal.data import Pool
from dpal.data.opening import open_pool
from dpal.errors import CampaignBusy, DamagedCampaign, InvalidArgument
from dpal.planning.plan import Plan, Schedule, stated_plan

_ATTEMPTS, _PAUSE_SECONDS = 10, 0.05


class CampaignFolder:
    """The facts of a campaign, and what follows from them."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder).absolute()
        created = self.state().created
        if plan_hash(created.plan) != created.plan_hash:
            raise DamagedCampaign(f"The plan in {self.folder} does not have the hash that was recorded with it.")
        # As it was recorded; whoever runs or verifies certifies it anew.
        self.plan: Plan = stated_plan(created.plan)
        self.schedule = Schedule(phases=self.plan.phases, selections=self.plan.selections)

    @contextmanager
    def _reader(self) -> Generator[tuple[Store, list[Recorded]]]:
        store = Store(self.folder, read_only=True)
        try:
            note = noted(self.folder)
            recorded = store.recorded()
            require_not_behind(self.folder, note, recorded)
            yield store, recorded
        finally:
            store.close()

    @contextmanager
    def _writer(self) -> Generator[Journal]:
        with only_writer(self.folder):
            store = Store(self.folder)
            try:
                yield Journal(self.folder, store)
            finally:
                store.close()

    def state(self) -> State:
        """Everything that has happened so far."""
        with self._reader() as (_, recorded):
            return fold(recorded)

    def status(self) -> Status:
        """Where the campaign stands."""
        return status_of(self.folder, self.state(), self.plan)

    def running(self) -> str | None:
        """Which process is writing now, in words."""
        return writer_of(self.folder)

    def verify(self, *, recompute: bool = True) -> Verification:
        """Recompute every ε from the facts and compare with what was planned; without `recompute`, all but the ε."""
        recorded, sealed = self._facts_and_keys()
        return verified(self.folder, recorded, sealed, recompute=recompute)

    def _facts_and_keys(self) -> tuple[list[Recorded], list[int]]:
        """Both from one moment. What a writer that died left behind is cleared away; a living one is waited for."""
        attempt = 1
        while True:
            with self._reader() as (store, recorded):
                sealed = store.keys.charges()
            if attempt == _ATTEMPTS or is_tidy(self.folder, fold(recorded), sealed):
                return recorded, sealed
            # Opening for writing tidies up. Where that is not possible, the checks say what is left over.
            with suppress(CampaignBusy, OSError), self._writer():
                pass
            time.sleep(_PAUSE_SECONDS)
            attempt += 1

    def ledger(self) -> dict[str, object]:
        """What was charged, for any accountant."""
        state = self.state()
        facts = {"ledger_hash": state.last_hash, "is_private": self.status().is_private}
        return Ledger.of(state).to_json(self.plan.setting) | facts

    def require_pool(self, pool: Pool) -> None:
        """Refuse a pool that is not the campaign's: other ids, another order, other classes."""
        created = self.state().created
        if pool.fingerprint() != created.pool_fingerprint:
            raise DamagedCampaign(
                f"The pool has other ids or another order than the one the campaign {self.folder} was made with "
                f"({len(pool):,} records now, {created.pool_size:,} then). Bring back the data as it was. "
                "Nothing was changed."
            )
        if (pool.classes, pool.multi_label) != (created.classes, created.multi_label):
            raise DamagedCampaign(
                f"The pool's classes are {', '.join(pool.classes)}; the campaign {self.folder} was made with "
                f"{', '.join(created.classes)}, in this order. Nothing was changed."
            )

    def import_labels(self, file: Path | str, pool: Pool) -> dict[str, int]:
        """Take answers from a table, all or none; says how many were new, corrected and unchanged."""
        self.require_pool(pool)
        with self._writer() as journal:
            state = journal.state
            asked = {name for group in state.groups for name in group}
            answers = read_answers(Path(file), pool, asked)
            changed = {name: each for name, each in answers.items() if state.answers.get(name) != each}
            faults.reached("import.checked")
            if changed:
                journal.add(Answered(source=Path(file).name, answers=changed))
            faults.reached("import.recorded")
            new = sum(name not in state.answers for name in changed)
            return {"new": new, "corrected": len(changed) - new, "unchanged": len(answers) - len(changed)}

    def export_labels(self, folder: Path | str, pool: Pool) -> int:
        """Write the records that wait for an answer to a folder; says how many."""
        self.require_pool(pool)
        state = self.state()
        waiting = [name for group in range(len(state.groups)) for name in state.missing(group)]
        if waiting:
            export_requests(pool, waiting, Path(folder).absolute())
        return len(waiting)

    def give_up(self, *, reason: str = "", settings: Sequence[str] = ()) -> Abandoned:
        """Give up the training phase that is charged and cannot end. Later phases start from the newest recorded model.

        `settings` change how later phases are trained: `["training.learning_rate=0.001"]`.
        """
        with self._writer() as journal:
            return give_up(journal, reason=reason, settings=settings)

    def close_round(self) -> int:
        """Go on without the answers that are missing; says how many. They can still come later."""
        with self._writer() as journal:
            step = next_step(journal.state, self.schedule)
            if not isinstance(step, WaitForLabels):
                return 0
            missing = len(journal.state.missing(step.group))
            journal.add(Closed(group=step.group))
            return missing


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
