"""The campaign itself: what is the next step? charge it, commit, run it, record it."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpal.campaign import faults
from dpal.campaign.answers import read_answer
from dpal.campaign.config import CampaignConfig, settings_hash
from dpal.campaign.facts import (
    Answer,
    Answered,
    Created,
    Evaluated,
    Finished,
    Resumed,
    Selected,
    Trained,
)
from dpal.campaign.files import digest, write_whole
from dpal.campaign.folder import CampaignFolder, plan_hash
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
from dpal.errors import DamagedCampaign, InvalidArgument, MissingData
from dpal.planning.certify import read_plan
from dpal.planning.plan import Plan
from dpal.randomness import Randomness
from dpal.selection.acquisition import Acquisition, probabilities_from_logits
from dpal.selection.mechanisms import Chosen, Uniform
from dpal.selection.planned import mechanism_of
from dpal.training.learner import Learner


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
        self.require_pool(parts.pool)
        planned = self.state().created.acquisition
        if parts.acquisition.name != planned:
            raise InvalidArgument("acquisition", parts.acquisition.name, f"{planned}, as it was planned")

    def run(self) -> Status:
        """Go on until labels are missing or everything is done. Call it again whenever; it continues where it was."""
        # Recorded, chained and certified once; certified again before anything is charged on it.
        read_plan(json.dumps(self.state().created.plan))
        with self._writer() as journal:
            while self._one_step(journal):
                pass
            return status_of(self.folder, journal.state, self.plan)

    def _one_step(self, journal: Journal) -> bool:
        state = journal.state
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

        The step sees the facts up to its charge and no later ones, so doing it again is doing the same.
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
        faults.reached(f"{point}.charged")
        return number, randomness_of(journal.store.keys.read(number), seed), journal.state_at(number)

    def _select(self, journal: Journal, group: int) -> None:
        if group > 0:
            # Whatever can be refused is refused before the charge.
            self._learner_at(journal.state)
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
        journal.add(fact, unseal=charge)
        faults.reached("select.recorded")
        of, planned = "the initial set" if group == 0 else f"query {group}", self.plan.groups[group].size
        fewer = f", of {planned:,} planned at most" if len(fact.to_label) < planned else ""
        self.parts.tell(f"{len(fact.to_label):,} records selected for {of}{fewer}")

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
        if len(left) == 0:
            return Chosen(to_label=pool.ids[left], retired=pool.ids[left])
        if isinstance(mechanism, Uniform):
            scores: NDArray[np.float64] = np.zeros(len(left))
        else:
            scores = self._scores(state, left, randomness)
        faults.reached("select.scored")
        return mechanism.select(scores, randomness=randomness, ids=pool.ids[left])

    def simulated_scores(self, group: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The scores that a query saw, and whom it took. In simulations only: scores are private."""
        state = self.state()
        if state.created.seed is None:
            raise InvalidArgument(
                "the campaign", "private", "a simulation (a seed and not_private): scores are private"
            )
        if not 1 <= group < len(state.selected):
            raise InvalidArgument("the query", group, f"from 1 to {len(state.selected) - 1}, the queries so far")
        charge = state.selected[group].charge
        with self._reader() as (_, recorded):
            seen = fold(recorded[:charge])
        taken = seen.taken()
        left = np.flatnonzero([name not in taken for name in self.parts.pool.ids.tolist()])
        randomness = randomness_of(fresh_seal(state.created.seed, len(seen.charges) - 1), state.created.seed)
        chosen = {*state.selected[group].to_label, *state.selected[group].retired}
        return self._scores(seen, left, randomness), np.asarray(
            [self.parts.pool.ids[place] in chosen for place in left]
        )

    def _scores(self, state: State, left: NDArray[np.int64], randomness: Randomness) -> NDArray[np.float64]:
        acquisition, pool = self.parts.acquisition, self.parts.pool
        logits = self._learner_at(state).logits(left, passes=acquisition.passes, randomness=randomness)
        return acquisition.scores(probabilities_from_logits(logits, multi_label=pool.multi_label))

    def _train(self, journal: Journal, phase: int) -> None:
        state = journal.state
        learner = self._learner_at(state)
        path = self.folder / checkpoint_name(phase)
        if state.open_charge is None:
            if not any(state.trainable(group) for group in range(len(state.groups))):
                allowed = "at least 1 to train on. Import labels (also after a round was closed); nothing was charged"
                raise InvalidArgument("the number of labels", 0, allowed)
            if path.exists():
                raise DamagedCampaign(
                    f"{path} is there, but the database knows nothing of it: the database is older than the folder. "
                    "Restore the whole folder from its newest backup. Nothing was changed."
                )
        charge, randomness, seen = self._charged(journal, charge_for_training(self.schedule, phase), "train")
        mark = f"charge {charge}: {seen.last_hash}"
        started = time.monotonic()
        engine = learner.engine_in(path, mark) if path.exists() else None
        if engine is None:
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
            engine = result.engine
            faults.reached("train.trained")
            write_whole(
                path, lambda draft: learner.save(draft, mark=mark, engine=result.engine), point="train.checkpoint"
            )
            faults.reached("train.checkpoint-written")
        # Otherwise this very charge's model is there already: it may have been seen, so it and no other is recorded.
        fact = Trained(
            charge=charge,
            phase=phase,
            file=checkpoint_name(phase),
            sha256=digest(path),
            engine=engine,
            seconds=round(time.monotonic() - started, 3),
        )
        journal.add(fact, unseal=charge)
        faults.reached("train.recorded")
        self.parts.tell(f"phase {phase + 1} of {len(self.schedule.phases)} trained")

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

    def _learner_at(self, state: State) -> Learner:
        """The learner with the newest recorded weights. A file that is not as recorded is refused."""
        if self._learner is None:
            self._learner = self.parts.learner()
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
    config: CampaignConfig,
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
        settings=settings_hash(config),
        seed=config.seed,
    )
