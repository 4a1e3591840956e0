"""The campaign itself: what is the next step? charge it, commit, run it, record it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpal.campaign import faults
from dpal.campaign.facts import (
    Answer,
    Answered,
    Created,
    Evaluated,
    Fact,
    Finished,
    Resumed,
    Selected,
    Trained,
)
from dpal.campaign.files import digest, write_whole
from dpal.campaign.folder import CampaignFolder, plan_hash
from dpal.campaign.ledger import charge_for_selection, charge_for_training
from dpal.campaign.lock import only_writer
from dpal.campaign.metrics import metrics_of
from dpal.campaign.oracles import Oracle
from dpal.campaign.seals import fresh_seal, randomness_of
from dpal.campaign.state import (
    Charge,
    Finish,
    Nothing,
    Select,
    State,
    Train,
    WaitForLabels,
    fold,
    next_step,
)
from dpal.campaign.status import Status, status_of
from dpal.campaign.store import Store
from dpal.data import Pool
from dpal.errors import DamagedCampaign, InvalidArgument
from dpal.planning.plan import Plan
from dpal.randomness import Randomness
from dpal.selection.acquisition import Acquisition, probabilities_from_logits
from dpal.selection.mechanisms import Chosen, Uniform
from dpal.selection.planned import mechanism_of
from dpal.training.learner import Learner

WEIGHTS = "checkpoints/initial.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a campaign works with, beside its folder. None of it is in the database."""

    pool: Pool
    learner: Callable[[], Learner]
    acquisition: Acquisition
    oracle: Oracle
    # A held-out set that is public, with the classes that count for several labels.
    evaluation: Pool | None = None
    evaluated_classes: tuple[str, ...] | None = None
    # Told what happens, in words for people.
    tell: Callable[[str], None] = field(default=lambda words: None)


class CampaignRun(CampaignFolder):
    """A campaign with its data and model: it can go on."""

    def __init__(self, folder: Path | str, parts: Parts) -> None:
        super().__init__(folder)
        self.parts = parts
        self._learner: Learner | None = None
        self._loaded: str | None = None
        created = self.state().created
        found = parts.pool.fingerprint()
        if found != created.pool_fingerprint:
            raise DamagedCampaign(
                f"The pool has other ids or another order than the one the campaign {self.folder} was made with "
                f"({len(parts.pool):,} records now, {created.pool_size:,} then). Bring back the data as it was. "
                "Nothing was charged."
            )
        if parts.acquisition.name != created.acquisition:
            raise InvalidArgument("acquisition", parts.acquisition.name, f"{created.acquisition}, as it was planned")

    def run(self) -> Status:
        """Go on until labels are missing or everything is done. Call it again whenever; it continues where it was."""
        with only_writer(self.folder), self._store() as store:
            while self._one_step(store):
                pass
            return status_of(self.folder, fold(store.recorded()), self.plan)

    def _one_step(self, store: Store) -> bool:
        state = fold(store.recorded())
        if self._must_evaluate(state):
            self._evaluate(store, state)
            return True
        match next_step(state, self.schedule):
            case Select(group):
                self._select(store, state, group)
            case Train(phase):
                self._train(store, state, phase)
            case WaitForLabels(group):
                return self._ask(store, state, group)
            case Finish():
                faults.reached("finish.before-record")
                store.append(Finished(), after=state.last)
                faults.reached("finish.recorded")
                self.parts.tell("the campaign is finished")
            case Nothing():
                return False
        return True

    def _charged(self, store: Store, state: State, charge: Charge, point: str) -> tuple[int, Randomness, State]:
        """Charge and commit, or take up a charge that was committed before; then the step's own randomness.

        The step sees the facts up to its charge and no later ones, so doing it again is doing the same.
        """
        seed = state.created.seed
        if state.open_charge is None:
            faults.reached(f"{point}.before-charge")
            number = store.append(charge, after=state.last, seal=fresh_seal(seed, len(state.charges)))
        else:
            number = state.open_charge[0]
            store.append(Resumed(charge=number), after=state.last)
            self.parts.tell("resuming a step that was charged: same charge, same randomness")
        faults.reached(f"{point}.charged")
        return number, randomness_of(store.seal(number), seed), fold(store.recorded(up_to=number))

    def _record_release(self, store: Store, fact: Fact, charge: int) -> None:
        """Record what a charge paid for, and erase its key in the same breath."""
        store.append(fact, after=fold(store.recorded()).last, unseal=charge)

    def _select(self, store: Store, state: State, group: int) -> None:
        charge, randomness, seen = self._charged(store, state, charge_for_selection(self.schedule, group), "select")
        chosen = self._chosen(seen, group, randomness)
        faults.reached("select.chosen")
        fact = Selected(
            charge=charge,
            group=group,
            to_label=tuple(str(name) for name in chosen.to_label),
            retired=tuple(str(name) for name in chosen.retired),
            threshold=chosen.threshold,
        )
        self._record_release(store, fact, charge)
        faults.reached("select.recorded")
        of = "the initial set" if group == 0 else f"query {group}"
        self.parts.tell(f"{len(fact.to_label):,} records selected for {of}")

    def _chosen(self, state: State, group: int, randomness: Randomness) -> Chosen:
        pool = self.parts.pool
        if group == 0:
            if state.created.initial:
                names = np.asarray(state.created.initial, dtype=np.str_)
                return Chosen(to_label=names, retired=np.empty(0, dtype=np.str_))
            size = self.plan.groups[0].size
            mechanism = Uniform(query_size=size, highest=1.0)
            return mechanism.select(np.zeros(len(pool)), randomness=randomness, ids=pool.ids)
        mechanism = mechanism_of(self.schedule.selections[group - 1], self.parts.acquisition)
        taken = state.taken()
        left = np.flatnonzero([name not in taken for name in pool.ids.tolist()])
        if isinstance(mechanism, Uniform):
            scores: NDArray[np.float64] = np.zeros(len(left))
        else:
            learner = self._learner_at(state)
            passes = self.parts.acquisition.passes
            logits = learner.logits(left, passes=passes, randomness=randomness)
            probabilities = probabilities_from_logits(logits, multi_label=pool.multi_label)
            scores = self.parts.acquisition.scores(probabilities)
        faults.reached("select.scored")
        return mechanism.select(scores, randomness=randomness, ids=pool.ids[left])

    def _train(self, store: Store, state: State, phase: int) -> None:
        # Whatever can be refused is refused before the charge.
        learner = self._learner_at(state)
        if state.open_charge is None and not any(state.trainable(group) for group in range(len(state.groups))):
            raise InvalidArgument(
                "the number of labels",
                0,
                "at least 1 to train on: all records were skipped. Nothing was charged",
            )
        charge, randomness, seen = self._charged(store, state, charge_for_training(self.schedule, phase), "train")
        started = time.monotonic()
        # From here on the weights are no longer the recorded ones, also if training ends early.
        self._loaded = None
        groups = [self.parts.pool.positions(seen.trainable(group)) for group in range(len(seen.groups))]
        result = learner.train(
            self.schedule.phases[phase],
            groups,
            _targets(seen, self.parts.pool),
            randomness=randomness,
            description=f"phase {phase + 1} of {len(self.schedule.phases)}",
            after_step=lambda step: faults.reached("train.step"),
        )
        faults.reached("train.trained")
        file = f"checkpoints/phase-{phase + 1}.safetensors"
        write_whole(self.folder / file, learner.save, point="train.checkpoint")
        faults.reached("train.checkpoint-written")
        fact = Trained(
            charge=charge,
            phase=phase,
            file=file,
            sha256=digest(self.folder / file),
            engine=result.engine,
            seconds=round(time.monotonic() - started, 3),
        )
        self._record_release(store, fact, charge)
        self._loaded = fact.sha256
        faults.reached("train.recorded")
        self.parts.tell(f"phase {phase + 1} of {len(self.schedule.phases)} trained")

    def _ask(self, store: Store, state: State, group: int) -> bool:
        """Ask the oracle; False if it answers later."""
        faults.reached("labels.asked")
        missing = state.missing(group)
        if group == 0 and state.created.initial and self.parts.pool.labels is not None:
            answers = _own_labels(self.parts.pool, missing)
        else:
            answers = self.parts.oracle.ask(missing, self.parts.pool)
        if not answers:
            return False
        faults.reached("labels.answered")
        unasked = sorted(set(answers) - set(missing))
        if unasked:
            raise InvalidArgument("the oracle's answers", unasked[:5], "for the records it was asked about")
        store.append(Answered(source=self.parts.oracle.name, answers=dict(answers)), after=state.last)
        faults.reached("labels.recorded")
        return True

    def _must_evaluate(self, state: State) -> bool:
        if self.parts.evaluation is None or not state.trained:
            return False
        return not state.evaluated or state.evaluated[-1].phase < state.trained[-1].phase

    def _evaluate(self, store: Store, state: State) -> None:
        pool = self.parts.evaluation
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
        store.append(Evaluated(phase=phase, records=len(known), metrics=measured), after=state.last)
        faults.reached("evaluate.recorded")
        shown = ", ".join(f"{name.replace('_', ' ')} {value:.1%}" for name, value in measured.items())
        self.parts.tell(f"phase {phase + 1} on {len(known):,} held-out records: {shown}")

    def export_model(self, file: Path | str) -> dict[str, Any]:
        """The newest model's weights as one safetensors file, and what can be said about it."""
        state = self.state()
        if not state.trained:
            raise InvalidArgument("the number of trained phases", 0, "at least 1; run the campaign first")
        learner = self._learner_at(state)
        write_whole(Path(file), learner.export)
        status = status_of(self.folder, state, self.plan)
        return {
            "file": str(file),
            "sha256": digest(Path(file)),
            "phase": len(state.trained),
            "of_phases": len(self.plan.phases),
            "classes": list(state.created.classes),
            "epsilon": status.epsilon_spent,
            "delta": status.target_delta,
            "is_private": status.is_private,
            "plan_hash": state.created.plan_hash,
            "ledger_hash": state.last_hash,
        }

    def _learner_at(self, state: State) -> Learner:
        """The learner with the newest recorded weights. A file that is not as recorded is refused."""
        if self._learner is None:
            self._learner = self.parts.learner()
        file, sha256 = (
            (state.trained[-1].file, state.trained[-1].sha256)
            if state.trained
            else (
                WEIGHTS,
                state.created.weights,
            )
        )
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


def _targets(state: State, pool: Pool) -> NDArray[np.generic]:
    """A row for every record; those without a label are not looked at."""
    shape = (len(pool), len(pool.classes)) if pool.multi_label else (len(pool),)
    targets = np.zeros(shape, dtype=np.float32 if pool.multi_label else np.int64)
    names = [name for group in range(len(state.groups)) for name in state.trainable(group)]
    for name, position in zip(names, pool.positions(names), strict=True):
        targets[position] = state.answers[name]
    return targets


def _own_labels(pool: Pool, ids: Sequence[str]) -> dict[str, Answer]:
    """The labels that records had from the start."""
    from dpal.campaign.oracles import SimulatedOracle

    return dict(SimulatedOracle().ask(ids, pool) or {})


def created_fact(
    *, plan: Plan, pool: Pool, acquisition: Acquisition, initial: Sequence[str], weights: Path, seed: int | None
) -> Created:
    """The first fact of a campaign."""
    from dpal import __version__

    document = plan.to_json()
    return Created(
        dpal_version=__version__,
        plan=document,
        plan_hash=plan_hash(document),
        pool_fingerprint=pool.fingerprint(),
        pool_size=len(pool),
        classes=pool.classes,
        multi_label=pool.multi_label,
        acquisition=acquisition.name,
        initial=tuple(initial),
        weights=digest(weights),
        seed=seed,
    )
