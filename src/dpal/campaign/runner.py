"""Running a campaign: what is the next step? Charge it, commit, run it, record it."""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpal.campaign import fault_points
from dpal.campaign.campaign_pool import campaign_pool, checked_records, nothing_charged
from dpal.campaign.campaign_units import CampaignUnits
from dpal.campaign.chance import in_words, stopped_after, verdict_of
from dpal.campaign.choosing import pool_scores, records_to_label
from dpal.campaign.config import CampaignConfig
from dpal.campaign.encoding import Encoding, require_encoder
from dpal.campaign.facts import Finished, MeanReleased, Produced, Resumed, Selected, Trained
from dpal.campaign.files import digest, put_in_place, write_draft
from dpal.campaign.fingerprints import Contents, write_stamps
from dpal.campaign.foreign_code import acquisition_name, is_same_code
from dpal.campaign.going_on import go_on, require_stopped
from dpal.campaign.held_out import guarded, require_held_out, require_separate_units
from dpal.campaign.intake import take_in
from dpal.campaign.layout import checkpoint_name
from dpal.campaign.ledger import charge_for_mean, charge_for_selection, charge_for_training, epsilon_spent
from dpal.campaign.lock import only_writer
from dpal.campaign.metrics import evaluation_of
from dpal.campaign.network_folders import network_warning
from dpal.campaign.parts import Parts, with_training
from dpal.campaign.phase_task import PhaseTask
from dpal.campaign.reader import Reader
from dpal.campaign.recorded_answers import ask_oracle
from dpal.campaign.recorded_model import RESTORE_MODEL, RecordedModel
from dpal.campaign.sealed_snapshot import SealedSnapshots
from dpal.campaign.selecting import chosen_records, require_known_blocks
from dpal.campaign.state import Charge, Finish, Nothing, ReleaseMean, Select, State, Train, WaitForLabels, next_step
from dpal.campaign.status import Status, status_of, words_of_selection
from dpal.campaign.step_randomness import fresh_key, randomness_of
from dpal.campaign.writer import Writer, writing
from dpal.data.large_pool import LargePool
from dpal.data.records import TextRecords
from dpal.errors import BadData, DamagedCampaign, InvalidArgument, MissingData
from dpal.planning.certification import read_plan
from dpal.planning.plan import stated_plan
from dpal.randomness import Randomness
from dpal.training.learner import Learner
from dpal.training.pool_mean import centred, private_mean
from dpal.training.processes import OneProcess, Processes
from dpal.training.progress import doing
from dpal.training.threads import fastest_threads


class Runner:
    """A campaign with its data and model, which can carry out steps."""

    def __init__(self, reader: Reader, parts: Parts, *, read_only: bool = False) -> None:
        self.reader, self.folder = reader, reader.folder
        # Who trains with this process: others have a runner of their own, which is for reading only.
        self.processes: Processes = OneProcess()
        self._read_only = read_only
        # With the code of selections that are not dpal's own, which reading does without.
        self.plan = stated_plan(reader.known_state().created.plan, import_code=True)
        self.schedule = self.plan.schedule
        self.parts = parts
        self.model = RecordedModel(reader.folder, lambda: self.parts.learner(self.parts.inputs))
        self.given_pool, self._given_inputs = parts.pool, parts.inputs
        self._step_is_charged = False
        contents = reader.contents()
        state = reader.known_state()
        given, planned = acquisition_name(parts.acquisition), state.created.acquisition
        if not is_same_code(given, planned):
            raise InvalidArgument("acquisition", given, f"{planned}, as it was planned")
        require_encoder(parts.encoder, state.created.encoder)
        lock = partial(only_writer, self.folder)
        self._take_records(state, contents, lock)
        if (given := parts.evaluation_as_given) is not None and parts.evaluation is not None:
            require_separate_units(given, self.parts.pool, contents)
            if (encoding := self._encoding(lock)) is not None:
                records = encoding.held_out(given, parts.pool, contents)
            else:
                require_held_out(given, parts.pool, contents, at_creation=state.created.held_out)
                records = guarded(given, parts.evaluation.records, parts.pool, contents)
            self.parts = replace(self.parts, evaluation=replace(parts.evaluation, records=records))

    def _take_records(self, state: State, contents: Contents, lock: Callable[[], AbstractContextManager[None]]) -> None:
        """Use only the campaign's own records: in its order, without withdrawn ones, each checked when it is read."""
        folder, charged = self.folder, self._charge_words
        pool, inputs = (
            campaign_pool(self.given_pool, state, contents, folder=folder, charged=charged),
            self._given_inputs,
        )
        if isinstance(pool, LargePool):
            inputs = pool.records
        elif pool is not self.given_pool:
            inputs = inputs.subset(self.given_pool.positions(pool.ids))
        self._checked = checked = checked_records(pool, contents, folder=folder, charged=charged)
        # Before anything is computed from them.
        self._check_files()
        if (encoding := self._encoding(lock)) is not None:
            inputs = encoding.pool(pool, checked, contents)
        elif not isinstance(pool.records, TextRecords):
            inputs = checked
        if not isinstance(pool.records, TextRecords):
            pool = replace(pool, records=checked)
        self.parts, self._withdrawn = replace(self.parts, pool=pool, inputs=inputs), state.withdrawn
        self.units = CampaignUnits.of(pool, contents)
        self.model.reset()

    def _encoding(self, lock: Callable[[], AbstractContextManager[None]]) -> Encoding | None:
        encoder, cache = self.parts.encoder, self.reader.config().training.features_cache
        if encoder is None:
            return None
        return Encoding(encoder=encoder, folder=self.folder, lock=lock, cache=cache, tell=self.parts.tell)

    def _check_files(self) -> None:
        if (renewed := self._checked.check_files()) and not self._read_only:
            write_stamps(self.folder, renewed)

    def _charge_words(self) -> str:
        if not self._step_is_charged:
            return nothing_charged()
        return "The step under way stays charged and nothing is lost: run again once this is settled."

    def train_with(self, config: CampaignConfig) -> None:
        """Train with this configuration's settings from now on."""
        self.parts = with_training(self.parts, config)
        self.model.reset()

    def run(self, *, past_chance: bool = False, settings: Sequence[str] = ()) -> Status:
        """Continue until labels are missing, a model is no better than chance, or everything is done.

        With `past_chance`, go on also from such models, and with these settings of the section training from now on.
        """
        # It was certified before it was recorded, and is certified again before anything is charged on it.
        with doing("certifying the plan"):
            read_plan(json.dumps(self.reader.state().created.plan), import_code=True)
        if (warning := network_warning(self.folder)) is not None:
            self.parts.tell(warning)
        with writing(self.reader) as writer:
            if writer.state.withdrawn != self._withdrawn:
                self._take_records(writer.state, self.reader.contents(), nullcontext)
            require_stopped(stopped_after(writer.state, self.schedule), settings)
            take_in(writer, self.reader.contents)
            while self._may_go_on(writer, past_chance, settings) and self._one_step(writer):
                take_in(writer, self.reader.contents)
            return status_of(self.folder, writer.state, self.plan)

    def _may_go_on(self, writer: Writer, past_chance: bool, settings: Sequence[str]) -> bool:
        """False where the next step would be charged, but the newest model is no better than chance."""
        stopped = None if self._must_evaluate(writer.state) else stopped_after(writer.state, self.schedule)
        if stopped is None:
            return True
        if past_chance:
            config = go_on(writer, stopped, settings)
            if settings:
                self.train_with(config)
            self.parts.tell(f"going on after phase {stopped + 1}, as told")
        return past_chance

    def _one_step(self, writer: Writer) -> bool:
        state = writer.state
        self._step_is_charged = state.open_charge is not None
        if self._must_evaluate(state):
            self._evaluate(writer)
            return True
        match next_step(state, self.schedule):
            case ReleaseMean():
                self._release_mean(writer)
            case Select(group):
                self._select(writer, group)
            case Train(phase):
                self._train(writer, phase)
            case WaitForLabels(group):
                return ask_oracle(writer, group, self.parts.oracle, self.parts.pool)
            case Finish():
                fault_points.reached("finish.before-record")
                writer.add(Finished())
                fault_points.reached("finish.recorded")
                self.parts.tell("the campaign is finished")
            case Nothing():
                return False
        return True

    def _charged(self, writer: Writer, charge: Charge, point: str) -> tuple[int, Randomness, State]:
        """Charge and commit, or resume a charge that was committed before; then the step's own randomness.

        The step sees the facts up to its charge and no later ones, so repeating it gives the same result. Only
        withdrawals count whenever they come: they bring a new key, which makes it another step, and the only one
        that is completed.
        """
        state = writer.state
        seed = state.created.seed
        if state.open_charge is None:
            fault_points.reached(f"{point}.before-charge")
            number = writer.add(charge, seal=fresh_key(seed, len(state.charges)))
            # Quick here, because this process has certified the plan; status reads it while the step runs.
            epsilon_spent(self.folder, writer.state, self.plan)
        else:
            number = state.open_charge[0]
            writer.add(Resumed(charge=number))
            self.parts.tell("resuming a step that was charged: same charge, same randomness")
        self._step_is_charged = True
        fault_points.reached(f"{point}.charged")
        key = writer.store.keys.read(writer.state.sealed_with or number)
        seen = replace(writer.state_at(number), withdrawn=writer.state.withdrawn)
        return number, randomness_of(key, seed), seen

    def _release_mean(self, writer: Writer) -> None:
        model = centred(self._ready(writer.state).model)
        due = charge_for_mean(self.schedule)
        charge, randomness, _ = self._charged(writer, due, "mean")
        mean = private_mean(
            model,
            self.parts.inputs,
            pool_size=self.plan.setting.pool_size,
            noise_multiplier=due.noise_multiplier,
            randomness=randomness,
            units=self.units.table if self.units.are_named else None,
        )
        fault_points.reached("mean.computed")
        writer.add(MeanReleased(charge=charge, mean=tuple(mean.tolist())), unseal=writer.state.sealed_with)
        fault_points.reached("mean.recorded")
        self.parts.tell("a private mean of the pool's features is released")

    def _select(self, writer: Writer, group: int) -> None:
        if group > 0:
            self._ready(writer.state)
        require_known_blocks(self.folder, writer.state, self.parts.pool, charged=self._charge_words())
        charge, randomness, seen = self._charged(writer, charge_for_selection(self.schedule, group), "select")
        chosen, copies = chosen_records(
            writer,
            charge,
            group,
            seen,
            plan=self.plan,
            units=self.units,
            parts=self.parts,
            model=self.model,
            scores=self.scores,
            randomness=randomness,
        )
        fault_points.reached("select.chosen")
        fact = Selected(
            charge=charge,
            group=group,
            to_label=records_to_label(chosen, seen, group, self.units, self.parts.pool),
            units=tuple(str(name) for name in chosen.to_label) if self.units.are_named else None,
            retired=tuple(str(name) for name in chosen.retired),
            threshold=chosen.threshold,
            contents=copies,
        )
        writer.add(fact, unseal=writer.state.sealed_with)
        fault_points.reached("select.recorded")
        self.parts.tell(words_of_selection(fact, self.plan))
        if copies is not None:
            # These records are at hand from now on.
            self._take_records(writer.state, self.reader.contents(), nullcontext)

    def scores(self, state: State, randomness: Randomness) -> NDArray[np.float64]:
        """The scores of the whole pool, unit by unit, whoever is labelled."""
        with self._threads():
            return pool_scores(self.model.at(state), self.units, self.parts, randomness)

    def _train(self, writer: Writer, phase: int) -> None:
        path = self.folder / checkpoint_name(phase)
        made = writer.state.produced or self._produce(writer, phase, path)
        # Someone may have seen it, so no other model may belong to this charge.
        if not put_in_place(path, made.sha256):
            raise DamagedCampaign(
                f"The model of phase {phase + 1} was made, but neither {path} nor its draft matches what was recorded. "
                f"{RESTORE_MODEL}"
            )
        fault_points.reached("train.checkpoint-written")
        fact = Trained(
            charge=made.charge,
            phase=phase,
            file=checkpoint_name(phase),
            sha256=made.sha256,
            export_sha256=made.export_sha256,
            engine=made.engine,
            seconds=made.seconds,
            processes=made.processes,
        )
        writer.add(fact, unseal=writer.state.sealed_with)
        fault_points.reached("train.recorded")
        self.parts.tell(f"phase {phase + 1} of {len(self.schedule.phases)} trained")

    def _produce(self, writer: Writer, phase: int, path: Path) -> Produced:
        """Charge, train, and record the model's hash before the file gets the name under which it can be seen."""
        state = writer.state
        if state.open_charge is None and not any(state.trainable(group) for group in range(len(state.groups))):
            raise MissingData(
                "There are no labels to train on. Import at least one label; this is possible even after a round was "
                "closed. Nothing was charged."
            )
        if path.exists():
            raise DamagedCampaign(
                f"{path} exists, but the database does not mention it: the database is older than the folder. "
                "Restore the whole folder from its newest backup. Nothing was changed."
            )
        learner = self._ready(state)
        charge, _, seen = self._charged(writer, charge_for_training(self.schedule, phase), "train")
        # Even if training fails, the weights are no longer the recorded ones.
        self.model.weights_changed()
        sealed_with = writer.state.sealed_with or charge
        key = writer.store.keys.read(sealed_with)
        task = PhaseTask.of(phase, self.schedule, seen, self.parts.pool, self.units, key=key)
        snapshots = SealedSnapshots.of(task, seen, self.folder, sealed_with, tell=self.parts.tell)
        if self.processes.count > 1:
            self.processes.send(task.to_bytes(learner.weights(), snapshots.newest()))
        with self._threads(self.processes.count):
            result = task.train(
                learner,
                processes=self.processes,
                snapshots=snapshots,
                after_step=lambda step: fault_points.reached("train.step"),
            )
        fault_points.reached("train.trained")
        export_sha256 = self.model.export_hash(learner)
        draft = write_draft(path, learner.save)
        fault_points.reached("train.checkpoint-drafted")
        made = Produced(
            charge=charge,
            phase=phase,
            sha256=digest(draft),
            export_sha256=export_sha256,
            engine=result.engine,
            seconds=round(snapshots.seconds, 3),
            processes=result.processes,
        )
        # From here on nothing removes the draft, not even a failure: the fact may be committed nevertheless.
        writer.add(made)
        fault_points.reached("train.produced")
        return made

    def _must_evaluate(self, state: State) -> bool:
        if self.parts.evaluation is None or not state.trained:
            return False
        return not state.evaluated or state.evaluated[-1].phase < state.trained[-1].phase

    def _evaluate(self, writer: Writer) -> None:
        state, pool = writer.state, self.parts.evaluation
        if pool is None or pool.labels is None:
            raise BadData("The evaluation's pool has no labels: give one with labels, or leave it out.")
        known = np.flatnonzero(pool.labelled())
        with self._threads():
            logits = self.model.at(state).logits_of(pool.records)[known]
        fact = evaluation_of(
            state.trained[-1].phase,
            logits,
            pool.labels[known],
            multi_label=pool.multi_label,
            classes=pool.classes,
            evaluated=self.parts.evaluated_classes,
        )
        fault_points.reached("evaluate.measured")
        writer.add(fact)
        fault_points.reached("evaluate.recorded")
        evaluated, verdict = writer.state.evaluated, verdict_of(fact)
        self.parts.tell(f"phase {fact.phase + 1}: {in_words(evaluated, len(evaluated) - 1, pool.classes)}.")
        if verdict is not None and verdict.is_chance and state.created.seed is not None:
            self.parts.tell("A simulation goes on nevertheless: it costs no privacy.")

    def _threads(self, processes: int = 1) -> AbstractContextManager[None]:
        """As many threads as are fastest. A simulation keeps its number, so that it repeats bit for bit."""
        return fastest_threads(keep=self.reader.known_state().created.seed is not None, processes=processes)

    def _ready(self, state: State) -> Learner:
        """The learner, once records and weights are checked: whatever can be refused is refused before the charge."""
        learner = self.model.at(state)
        if not learner.in_memory:
            self._check_files()
        return learner
