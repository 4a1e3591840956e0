"""The campaign itself: what is the next step? charge it, commit, run it, record it."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpal.campaign import faults
from dpal.campaign.answers import read_answer
from dpal.campaign.config import CampaignConfig, settings_hash
from dpal.campaign.contents import CheckedRecords, Contents, write_stamps
from dpal.campaign.facts import (
    Answer,
    Answered,
    Created,
    Evaluated,
    Finished,
    Produced,
    Resumed,
    Selected,
    Trained,
)
from dpal.campaign.files import digest, put_in_place, write_draft, write_whole
from dpal.campaign.folder import CampaignFolder, plan_hash
from dpal.campaign.foreign_code import acquisition_name, is_same_code
from dpal.campaign.held_out import guarded, require_held_out
from dpal.campaign.journal import Journal
from dpal.campaign.ledger import charge_for_selection, charge_for_training
from dpal.campaign.metrics import metrics_of
from dpal.campaign.oracles import Oracle, SimulatedOracle
from dpal.campaign.spent import epsilon_spent
from dpal.campaign.state import (
    WEIGHTS,
    Charge,
    Finish,
    Nothing,
    Select,
    State,
    Train,
    WaitForLabels,
    checkpoint_name,
    fold,
    next_step,
)
from dpal.campaign.status import Status, status_of
from dpal.campaign.step_randomness import fresh_seal, randomness_of
from dpal.data import Pool
from dpal.data.records import Records, TextRecords
from dpal.errors import DamagedCampaign, InvalidArgument, MissingData
from dpal.planning.certification import read_plan
from dpal.planning.plan import Plan
from dpal.randomness import Randomness
from dpal.selection.acquisition import Acquisition, probabilities_from_logits
from dpal.selection.acquisition_checks import scores_by_record
from dpal.selection.baselines import RandomSelection
from dpal.selection.selection import Chosen, Selection
from dpal.training.learner import Learner
from dpal.training.sampling import BLANK


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a campaign works with, beside its folder. None of it is in the database."""

    pool: Pool
    # What the model reads of the pool: texts as token numbers, anything else as it is.
    inputs: Records
    learner: Callable[[Records], Learner]
    acquisition: Acquisition
    oracle: Oracle
    # A held-out set that is public, as it was given and as the model reads it; with the classes that count for several
    # labels.
    evaluation_as_given: Pool | None = None
    evaluation: Pool | None = None
    evaluated_classes: tuple[str, ...] | None = None
    # Import paths of an acquisition function and a model that are not dpal's.
    foreign_code: tuple[str, ...] = ()
    # Told what happens, in words for people.
    tell: Callable[[str], None] = field(default=lambda words: None)


class CampaignRun(CampaignFolder):
    """A campaign with its data and model: it can go on."""

    def __init__(self, folder: Path | str, parts: Parts) -> None:
        super().__init__(folder)
        self.parts = parts
        self._given_pool, self._given_inputs = parts.pool, parts.inputs
        self._learner: Learner | None = None
        self._loaded: str | None = None
        self._step_is_charged = False
        state, contents = self.state(), self.contents()
        given, planned = acquisition_name(parts.acquisition), state.created.acquisition
        if not is_same_code(given, planned):
            raise InvalidArgument("acquisition", given, f"{planned}, as it was planned")
        self._take_records(state, contents)
        if parts.evaluation_as_given is not None and parts.evaluation is not None:
            require_held_out(parts.evaluation_as_given, parts.pool, contents)
            records = guarded(parts.evaluation_as_given, parts.evaluation.records, parts.pool, contents)
            self.parts = replace(self.parts, evaluation=replace(parts.evaluation, records=records))

    def _take_records(self, state: State, contents: Contents) -> None:
        """From here on there are the campaign's records alone: in its order, without withdrawn ones, each as it was."""
        pool, inputs = self.require_pool(self._given_pool, contents), self._given_inputs
        if pool is not self._given_pool:
            inputs = inputs.subset(self._given_pool.positions(pool.ids))
        checked = CheckedRecords(contents, pool, lambda ids, what: self._records_refused(ids, what, contents))
        if not isinstance(pool.records, TextRecords):
            pool, inputs = replace(pool, records=checked), checked
        self.parts = replace(self.parts, pool=pool, inputs=inputs)
        self._checked, self._withdrawn = checked, state.withdrawn
        self._learner, self._loaded = None, None
        self._check_files()

    def _check_files(self) -> None:
        if renewed := self._checked.check_files():
            write_stamps(self.folder, renewed)

    def _charge_words(self) -> str:
        if not self._step_is_charged:
            return super()._charge_words()
        return "The step under way stays charged and nothing is lost: run again once this is settled."

    def run(self) -> Status:
        """Go on until labels are missing or everything is done. Call it again whenever; it continues where it was."""
        # Recorded, chained and certified once; certified again before anything is charged on it.
        read_plan(json.dumps(self.state().created.plan), import_code=True)
        with self._writer() as journal:
            if journal.state.withdrawn != self._withdrawn:
                self._take_records(journal.state, self.contents())
            while self._one_step(journal):
                pass
            return status_of(self.folder, journal.state, self.plan)

    def _one_step(self, journal: Journal) -> bool:
        state = journal.state
        self._step_is_charged = state.open_charge is not None
        if self._must_evaluate(state):
            self._evaluate(journal)
            return True
        match next_step(state, self.schedule):
            case Select(group):
                self._select(journal, group)
            case Train(phase):
                self._train(journal, phase)
            case WaitForLabels(group):
                return self._ask(journal, group)
            case Finish():
                faults.reached("finish.before-record")
                journal.add(Finished())
                faults.reached("finish.recorded")
                self.parts.tell("the campaign is finished")
            case Nothing():
                return False
        return True

    def _charged(self, journal: Journal, charge: Charge, point: str) -> tuple[int, Randomness, State]:
        """Charge and commit, or take up a charge that was committed before; then the step's own randomness.

        The step sees the facts up to its charge and no later ones, so doing it again is doing the same. Only
        withdrawals count whenever they come: they bring a new key, so it is another step, and the only one that ends.
        """
        state = journal.state
        seed = state.created.seed
        if state.open_charge is None:
            faults.reached(f"{point}.before-charge")
            number = journal.add(charge, seal=fresh_seal(seed, len(state.charges)))
            # This process has certified the plan, so it is quick here; status reads it while the step runs.
            epsilon_spent(self.folder, journal.state, self.plan)
        else:
            number = state.open_charge[0]
            journal.add(Resumed(charge=number))
            self.parts.tell("resuming a step that was charged: same charge, same randomness")
        self._step_is_charged = True
        faults.reached(f"{point}.charged")
        key = journal.store.keys.read(journal.state.sealed_with or number)
        seen = replace(journal.state_at(number), withdrawn=journal.state.withdrawn)
        return number, randomness_of(key, seed), seen

    def _select(self, journal: Journal, group: int) -> None:
        if group > 0:
            self._ready(journal.state)
        charge, randomness, seen = self._charged(journal, charge_for_selection(self.schedule, group), "select")
        chosen = self._chosen(seen, group, randomness)
        faults.reached("select.chosen")
        fact = Selected(
            charge=charge,
            group=group,
            to_label=tuple(str(name) for name in chosen.to_label),
            retired=tuple(str(name) for name in chosen.retired),
            threshold=chosen.threshold,
        )
        journal.add(fact, unseal=journal.state.sealed_with)
        faults.reached("select.recorded")
        of, planned = "the initial set" if group == 0 else f"query {group}", self.plan.groups[group].size
        fewer = f", of {planned:,} planned at most" if len(fact.to_label) < planned else ""
        self.parts.tell(f"{len(fact.to_label):,} records selected for {of}{fewer}")

    def _chosen(self, state: State, group: int, randomness: Randomness) -> Chosen:
        pool = self.parts.pool
        if group == 0:
            if state.created.initial:
                names = [name for name in state.created.initial if name not in state.withdrawn]
                return Chosen(to_label=np.asarray(names, dtype=np.str_), retired=np.empty(0, dtype=np.str_))
            selection = RandomSelection(query_size=self.plan.groups[0].size, unlabelled=len(pool))
            return _selected(selection, np.zeros(len(pool)), pool.ids, self.parts.acquisition, randomness)
        selection = self.schedule.selections[group - 1]
        taken = state.taken()
        left = np.flatnonzero([name not in taken for name in pool.ids.tolist()])
        if len(left) == 0:
            return Chosen(to_label=pool.ids[left], retired=pool.ids[left])
        scores = self._scores(state, left, randomness) if selection.reads_scores else np.zeros(len(left))
        faults.reached("select.scored")
        return _selected(selection, scores, pool.ids[left], self.parts.acquisition, randomness)

    def simulated_scores(self, group: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The scores that a query saw, and whom it took. In simulations only: scores are private."""
        state = self.state()
        if state.created.seed is None:
            raise InvalidArgument(
                "the campaign", "private", "a simulation (a seed and not_private): scores are private"
            )
        if not 1 <= group < len(state.selected):
            raise InvalidArgument("the query", group, f"from 1 to {len(state.selected) - 1}, the queries so far")
        with self._reader() as (_, recorded):
            (number,) = (each.number for each in recorded if each.fact == state.selected[group])
            before, charged = fold(recorded[: number - 1]), fold(recorded[: state.selected[group].charge])
        # The step saw the facts up to its charge, and withdrawals up to its end.
        seen = replace(charged, withdrawn=before.withdrawn)
        taken = seen.taken()
        left = np.flatnonzero([name not in taken for name in self.parts.pool.ids.tolist()])
        withdrawn = len(seen.withdrawn) if seen.withdrawn != charged.withdrawn else 0
        key = fresh_seal(state.created.seed, len(seen.charges) - 1, withdrawn)
        randomness = randomness_of(key, state.created.seed)
        chosen = {*state.selected[group].to_label, *state.selected[group].retired}
        return self._scores(seen, left, randomness), np.asarray(
            [self.parts.pool.ids[place] in chosen for place in left]
        )

    def _scores(self, state: State, left: NDArray[np.int64], randomness: Randomness) -> NDArray[np.float64]:
        acquisition, pool = self.parts.acquisition, self.parts.pool
        logits = self._learner_at(state).logits(left, passes=acquisition.passes, randomness=randomness)
        return scores_by_record(acquisition, probabilities_from_logits(logits, multi_label=pool.multi_label))

    def _train(self, journal: Journal, phase: int) -> None:
        path = self.folder / checkpoint_name(phase)
        made = journal.state.produced or self._produce(journal, phase, path)
        # It may have been seen, so it and no other is this charge's model.
        if not put_in_place(path, made.sha256):
            raise DamagedCampaign(
                f"The model of phase {phase + 1} was made, but neither {path} nor its draft is there as it was "
                "recorded. Restore it from a backup: training again would release a second model on one charge, which "
                "the plan does not pay for. Nothing was changed."
            )
        faults.reached("train.checkpoint-written")
        fact = Trained(
            charge=made.charge,
            phase=phase,
            file=checkpoint_name(phase),
            sha256=made.sha256,
            export_sha256=made.export_sha256,
            engine=made.engine,
            seconds=made.seconds,
        )
        journal.add(fact, unseal=journal.state.sealed_with)
        faults.reached("train.recorded")
        self.parts.tell(f"phase {phase + 1} of {len(self.schedule.phases)} trained")

    def _produce(self, journal: Journal, phase: int, path: Path) -> Produced:
        """Charge, train, and record which model it is before the file gets the name under which it can be seen."""
        state = journal.state
        if state.open_charge is None and not any(state.trainable(group) for group in range(len(state.groups))):
            allowed = "at least 1 to train on. Import labels (also after a round was closed); nothing was charged"
            raise InvalidArgument("the number of labels", 0, allowed)
        if path.exists():
            raise DamagedCampaign(
                f"{path} is there, but the database knows nothing of it: the database is older than the folder. "
                "Restore the whole folder from its newest backup. Nothing was changed."
            )
        learner = self._ready(state)
        charge, randomness, seen = self._charged(journal, charge_for_training(self.schedule, phase), "train")
        started = time.monotonic()
        # From here on the weights are no longer the recorded ones, also if training ends early.
        self._loaded = None
        result = learner.train(
            self.schedule.phases[phase],
            [_members(seen, group, self.parts.pool) for group in range(len(seen.groups))],
            _targets(seen, self.parts.pool),
            randomness=randomness,
            description=f"phase {phase + 1} of {len(self.schedule.phases)}",
            after_step=lambda step: faults.reached("train.step"),
        )
        faults.reached("train.trained")
        export_sha256 = self._export_hash(learner)
        draft = write_draft(path, learner.save)
        faults.reached("train.checkpoint-drafted")
        made = Produced(
            charge=charge,
            phase=phase,
            sha256=digest(draft),
            export_sha256=export_sha256,
            engine=result.engine,
            seconds=round(time.monotonic() - started, 3),
        )
        # Nothing removes the draft from here on, not even if this fails: the fact may be committed all the same.
        journal.add(made)
        faults.reached("train.produced")
        return made

    def _export_hash(self, learner: Learner) -> str:
        """The hash of the file that `export_model` would write now."""
        draft = self.folder / "checkpoints" / ".export.draft"
        try:
            learner.export(draft)
            return digest(draft)
        finally:
            draft.unlink(missing_ok=True)

    def _ask(self, journal: Journal, group: int) -> bool:
        """Ask the oracle; False if it answers later. Answers that were given before it failed are kept."""
        faults.reached("labels.asked")
        pool, missing = self.parts.pool, journal.state.missing(group)
        oracle: Oracle = self.parts.oracle
        if group == 0 and journal.state.created.initial and pool.labels is not None:
            # Records that were labelled from the start bring their labels along.
            oracle = SimulatedOracle()
        given = oracle.ask(missing, pool)
        if given is None:
            return False
        answers: dict[str, Answer] = {}
        asked = set(missing)
        try:
            for name, answer in given.items() if isinstance(given, Mapping) else given:
                if name not in asked:
                    raise InvalidArgument("the id of an oracle's answer", name, "one that it was asked about")
                answers[name] = read_answer(answer, name, pool.classes, pool.multi_label)
        finally:
            if answers:
                faults.reached("labels.answered")
                journal.add(Answered(source=oracle.name, answers=answers))
                faults.reached("labels.recorded")
        return bool(answers)

    def _must_evaluate(self, state: State) -> bool:
        if self.parts.evaluation is None or not state.trained:
            return False
        return not state.evaluated or state.evaluated[-1].phase < state.trained[-1].phase

    def _evaluate(self, journal: Journal) -> None:
        state, pool = journal.state, self.parts.evaluation
        if pool is None or pool.labels is None:
            raise InvalidArgument("the evaluation's pool", "without labels", "labelled, or left out")
        known = np.flatnonzero(pool.labelled())
        measured = metrics_of(
            self._learner_at(state).logits_of(pool.records)[known],
            pool.labels[known],
            multi_label=pool.multi_label,
            classes=pool.classes,
            evaluated=self.parts.evaluated_classes,
        )
        faults.reached("evaluate.measured")
        phase = state.trained[-1].phase
        journal.add(Evaluated(phase=phase, records=len(known), metrics=measured))
        faults.reached("evaluate.recorded")
        shown = ", ".join(f"{name.replace('_', ' ')} {value:.1%}" for name, value in measured.items())
        self.parts.tell(f"phase {phase + 1} on {len(known):,} held-out records: {shown}")

    def export_model(self, file: Path | str) -> dict[str, Any]:
        """The newest model's weights as one safetensors file, and what can be said about it."""
        state, path = self.state(), Path(file).absolute()
        if not state.trained:
            why = "every phase so far was given up" if state.given_up else "no phase is trained yet"
            raise MissingData(f"There is no model to export from {self.folder}: {why}. Nothing was written.")
        if path.resolve().is_relative_to(self.folder.resolve()) or not path.parent.is_dir():
            raise InvalidArgument("the file to write", str(file), "in a folder that exists, outside the campaign")
        learner = self._learner_at(state)
        write_whole(path, learner.export)
        status = status_of(self.folder, state, self.plan)
        return {
            "file": str(file),
            "sha256": digest(path),
            "phase": state.trained[-1].phase + 1,
            "of_phases": len(self.plan.phases),
            "phases_given_up": [phase + 1 for phase in state.given_up],
            "classes": list(state.created.classes),
            # Spent by all charges so far.
            "epsilon": status.epsilon_spent,
            "delta": status.target_delta,
            "is_private": status.is_private,
            "plan_hash": state.created.plan_hash,
            "ledger_hash": state.last_hash,
        }

    def _ready(self, state: State) -> Learner:
        """The learner, and records that are as they were: whatever can be refused is refused before the charge."""
        learner = self._learner_at(state)
        if not learner.in_memory:
            self._check_files()
        return learner

    def _learner_at(self, state: State) -> Learner:
        """The learner with the newest recorded weights. A file that is not as recorded is refused."""
        if self._learner is None:
            self._learner = self.parts.learner(self.parts.inputs)
        file, sha256 = WEIGHTS, state.created.weights
        if state.trained:
            file, sha256 = state.trained[-1].file, state.trained[-1].sha256
        if self._loaded != sha256:
            path = self.folder / file
            if not path.is_file() or digest(path) != sha256:
                raise DamagedCampaign(
                    f"{path} is missing or not as it was recorded. Restore it from a backup: training again would "
                    "release a second model on one charge, which the plan does not pay for. Nothing was changed."
                )
            self._learner.load(path)
            self._loaded = sha256
        return self._learner


def _selected(
    selection: Selection,
    scores: NDArray[np.float64],
    ids: NDArray[np.str_],
    acquisition: Acquisition,
    randomness: Randomness,
) -> Chosen:
    """The choice of a selection. Where withdrawals left fewer records than its ε was computed for, blanks fill up.

    A blank has the lowest score, as in the definition of neighbouring pools, and is nobody when it is chosen.
    """
    blanks = max(0, selection.smallest_pool - len(ids))
    chosen = selection.choose(
        np.concatenate([scores, np.zeros(blanks)]),
        highest=acquisition.highest,
        clip=acquisition.clip,
        randomness=randomness,
        ids=np.concatenate([ids, np.full(blanks, "", dtype=ids.dtype)]),
    )
    return replace(
        chosen, to_label=chosen.to_label[chosen.to_label != ""], retired=chosen.retired[chosen.retired != ""]
    )


def _members(state: State, group: int, pool: Pool) -> NDArray[np.int64]:
    """The positions of a group's records. One without a label keeps its place as a blank: who it is was released, and
    what it holds must change nothing but its own gradient.
    """
    labelled = state.trainable(group)
    places = dict(zip(labelled, pool.positions(labelled).tolist(), strict=True))
    return np.asarray([places.get(name, BLANK) for name in state.groups[group]], dtype=np.int64)


def _targets(state: State, pool: Pool) -> NDArray[np.generic]:
    """A row for every record; those without a label are not looked at."""
    shape = (len(pool), len(pool.classes)) if pool.multi_label else (len(pool),)
    targets = np.zeros(shape, dtype=np.float32 if pool.multi_label else np.int64)
    names = [name for group in range(len(state.groups)) for name in state.trainable(group)]
    for name, position in zip(names, pool.positions(names), strict=True):
        targets[position] = state.answers[name]
    return targets


def created_fact(
    *,
    plan: Plan,
    pool: Pool,
    acquisition: Acquisition,
    initial: Sequence[str],
    weights: Path,
    contents: Contents,
    config: CampaignConfig,
    foreign_code: tuple[str, ...],
) -> Created:
    """The first fact of a campaign."""
    from dpal import __version__

    document = plan.to_json()
    return Created(
        dpal_version=__version__,
        plan=document,
        plan_hash=plan_hash(document),
        contents=contents.hash(),
        pool_size=len(pool),
        classes=pool.classes,
        multi_label=pool.multi_label,
        acquisition=acquisition_name(acquisition),
        initial=tuple(initial),
        weights=digest(weights),
        settings=settings_hash(config),
        seed=config.seed,
        foreign_code=foreign_code,
        ids_are_free_of_content=pool.ids_are_free_of_content,
    )
