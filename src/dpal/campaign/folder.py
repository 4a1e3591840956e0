"""A campaign as its folder has it: for everyone who reads, and for bringing labels in. Needs no model."""

import hashlib
import json
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dpal.campaign import faults
from dpal.campaign.config import NAME, read_config
from dpal.campaign.contents import CheckedRecords, Contents, few, records_refused
from dpal.campaign.exchange import export_requests, read_answers
from dpal.campaign.facts import Answered, Closed, Withdrawn
from dpal.campaign.giving_up import Abandoned, give_up
from dpal.campaign.head import noted, require_not_behind
from dpal.campaign.journal import Journal
from dpal.campaign.ledger import Ledger
from dpal.campaign.lock import only_writer, writer_of
from dpal.campaign.public_names import Names, public_names
from dpal.campaign.state import State, WaitForLabels, fold, next_step
from dpal.campaign.status import Status, status_of
from dpal.campaign.step_randomness import fresh_seal
from dpal.campaign.store import Recorded, Store
from dpal.campaign.tidying import is_tidy
from dpal.campaign.verification import Verification, verified
from dpal.data import Pool
from dpal.data.sources import open_pool
from dpal.errors import BadData, CampaignBusy, DamagedCampaign, InvalidArgument, RecordsChanged
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
        self.plan: Plan = stated_plan(created.plan, import_code=True)
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
        found = verified(self.folder, recorded, sealed, recompute=recompute)
        if not found.holds and self.state().last > len(recorded):
            # Somebody was writing meanwhile: the files are newer than the facts they were held against.
            return self.verify(recompute=recompute)
        return found

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

    def contents(self) -> Contents:
        """Ids and fingerprints of the records that the campaign was made with. Never to be released."""
        with self._reader() as (store, recorded):
            created = fold(recorded[:1]).created
            return Contents.read(self.folder, key=store.secret(), expected=created.contents)

    def require_pool(self, pool: Pool, contents: Contents | None = None) -> Pool:
        """The pool in the campaign's order and without withdrawn records. Refuse one with other ids or classes."""
        state, contents = self.state(), contents or self.contents()
        created = state.created
        given, known = set(pool.ids.tolist()), set(contents.ids)
        kept = [name for name in contents.ids if name not in state.withdrawn]
        if missing := [name for name in kept if name not in given]:
            raise self._records_refused(missing, "are not in the data any more", contents)
        if strange := sorted(given - known):
            raise RecordsChanged(
                f"{len(strange):,} record(s) in the data are not in the campaign {self.folder}: {few(strange)}. A "
                "campaign's pool does not grow: take them out, or make a new campaign. Nothing was changed."
            )
        if (pool.classes, pool.multi_label) != (created.classes, created.multi_label):
            raise DamagedCampaign(
                f"The pool's classes are {', '.join(pool.classes)}; the campaign {self.folder} was made with "
                f"{', '.join(created.classes)}, in this order. Nothing was changed."
            )
        return pool if pool.ids.tolist() == kept else pool.take(kept)

    def _records_refused(self, ids: list[str], what: str, contents: Contents) -> RecordsChanged:
        row_numbers = contents.ids_are_row_numbers()
        return records_refused(ids, what, folder=self.folder, row_numbers=row_numbers, charged=self._charge_words())

    def _charge_words(self) -> str:
        """What an error says about charges."""
        return "Nothing was charged."

    def withdraw(self, ids: Iterable[str] | str, *, reason: str = "") -> int:
        """Take records out for good; says how many are new. They take part in nothing from now on.

        All or none: an unknown id is refused. What was charged and released before stands.
        """
        wanted = list(dict.fromkeys([ids] if isinstance(ids, str) else ids))
        known = set(self.contents().ids)
        if unknown := [name for name in wanted if name not in known]:
            raise BadData(
                f"{len(unknown):,} id(s) are not in the campaign {self.folder}: {few(unknown, 20)}. No record was "
                "withdrawn; correct them and give all ids again."
            )
        with self._writer() as journal:
            state = journal.state
            new = tuple(name for name in wanted if name not in state.withdrawn)
            if not new:
                return 0
            seal = unseal = None
            if state.open_charge is not None and state.produced is None:
                # A step is charged, and nothing of it was ever released: it may be done on other records, as long as
                # it is the only one that is. Its key goes, and with it the noise that was drawn for the records as
                # they were. With the same noise, whatever the first attempt left behind (a draft, a copy of memory)
                # and the model that comes would differ by nothing but the withdrawn records' gradients.
                seal = fresh_seal(state.created.seed, len(state.charges) - 1, len(state.withdrawn) + len(new))
                unseal = state.sealed_with
            journal.add(Withdrawn(ids=new, reason=reason), seal=seal, unseal=unseal)
            return len(new)

    def import_labels(self, file: Path | str, pool: Pool) -> dict[str, int]:
        """Take answers from a table, all or none; says how many were new, corrected and unchanged.

        Those for withdrawn records are counted and not taken.
        """
        pool = self.require_pool(pool)
        with self._writer() as journal:
            state = journal.state
            asked = {name for group in state.groups for name in group}
            names = _names(journal.store, state, self.contents().ids)
            answers = read_answers(Path(file), pool, asked, names=names, withdrawn=state.withdrawn)
            withdrawn = [name for name in answers if name in state.withdrawn]
            answers = {name: each for name, each in answers.items() if name not in state.withdrawn}
            changed = {name: each for name, each in answers.items() if state.answers.get(name) != each}
            faults.reached("import.checked")
            if changed:
                journal.add(Answered(source=Path(file).name, answers=changed))
            faults.reached("import.recorded")
            new = sum(name not in state.answers for name in changed)
            unchanged = len(answers) - len(changed)
            return {
                "new": new,
                "corrected": len(changed) - new,
                "unchanged": unchanged,
                "withdrawn": len(withdrawn),
            }

    def export_labels(self, folder: Path | str, pool: Pool) -> int:
        """Write the records that wait for an answer to a folder; says how many."""
        contents = self.contents()
        pool = self.require_pool(pool, contents)
        with self._reader() as (store, recorded):
            state = fold(recorded)
            names = _names(store, state, contents.ids)
        waiting = [name for group in range(len(state.groups)) for name in state.missing(group)]
        if waiting:
            # People must see the very records that the model will be trained on.
            checked = CheckedRecords(contents, pool, lambda ids, what: self._records_refused(ids, what, contents))
            checked.check(pool.positions(waiting))
            export_requests(pool, waiting, Path(folder).absolute(), names=names)
        return len(waiting)

    def identify(self, names: Sequence[str]) -> dict[str, str | None]:
        """The ids of records by their names outside; None for what no record is called. For people inside."""
        with self._reader() as (store, recorded):
            known = _names(store, fold(recorded), self.contents().ids)
        return {name: known.id_of(name) for name in names}

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


def _names(store: Store, state: State, ids: Iterable[str]) -> Names:
    """What the campaign's records are called outside, those that were withdrawn since included."""
    free = state.created.ids_are_free_of_content
    return public_names(ids, secret=store.secret(), ids_are_free_of_content=free)


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
