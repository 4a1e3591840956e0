"""The campaign that users hold: created once, opened ever after."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpal.campaign import given_up_phase, labelling, waiting, withdrawal
from dpal.campaign.campaign_pool import open_data
from dpal.campaign.changed_config import require_recorded
from dpal.campaign.config import CampaignConfig, Text, checked_config, read_config, training_section
from dpal.campaign.fingerprints import Contents
from dpal.campaign.given_up_phase import Abandoned
from dpal.campaign.intake import take_in
from dpal.campaign.label_studio_sync import Synced
from dpal.campaign.layout import CONFIG
from dpal.campaign.leftovers import has_leftovers
from dpal.campaign.lock import writer_of
from dpal.campaign.reader import Reader
from dpal.campaign.recorded_answers import asked_units
from dpal.campaign.simulated_scores import simulated_scores
from dpal.campaign.state import State
from dpal.campaign.status import Status
from dpal.campaign.store import Recorded
from dpal.campaign.verification import Verification, verified
from dpal.campaign.writer import writing
from dpal.data import Pool
from dpal.errors import CampaignBusy, InvalidArgument
from dpal.labels.label_files import DEFAULT_KIND
from dpal.labels.oracles import OracleLike, oracle_name
from dpal.planning.plan import Plan, Schedule
from dpal.selection.acquisition import Acquisition
from dpal.training.progress import doing
from dpal.training.settings import AUTOMATIC, ComputeSettings, TrainingSettings

if TYPE_CHECKING:
    from dpal.campaign.parts import ModelLike, Parts
    from dpal.campaign.runner import Runner

_ATTEMPTS, _PAUSE_SECONDS = 10, 0.05


class Campaign:
    """A differentially private active-learning campaign in a folder.

    `Campaign(folder)` reads it and takes answers and withdrawals; `create` and `open` also load its data and model, so
    that it can run. Only they import torch, which takes seconds.
    """

    def __init__(self, folder: Path | str) -> None:
        self.reader = Reader(folder)
        self._runner: Runner | None = None
        # The configuration that the runner works with.
        self._config: CampaignConfig | None = None

    @classmethod
    def create(
        cls,
        folder: Path | str,
        *,
        plan: Plan,
        pool: Pool,
        model: "ModelLike",
        acquisition: str | Acquisition = AUTOMATIC,
        oracle: OracleLike = "files",
        evaluation: Pool | None = None,
        evaluation_is_public: bool = False,
        training: TrainingSettings | Mapping[str, Any] | None = None,
        compute: ComputeSettings | None = None,
        text: Text | Mapping[str, Any] | None = None,
        initial: Sequence[str] = (),
        ids_are_free_of_content: bool = False,
        seed: int | None = None,
        not_private: bool = False,
    ) -> "Campaign":
        """A new campaign from objects. Opening it again takes the same pool and model.

        `initial` are ids of records that are already labelled; otherwise the initial set is drawn at random. Unless ids
        are declared free of content, tables for people show opaque names instead.
        """
        from dpal.campaign.parts import described_acquisition, parts_of

        if ids_are_free_of_content:
            pool = replace(pool, ids_are_free_of_content=True)
        _require_public(evaluation, evaluation_is_public)
        given = {
            "model": {"name": model, "options": {}} if isinstance(model, str) else None,
            "training": training_section(training, compute),
            "text": text.model_dump() if isinstance(text, Text) else text,
            "acquisition": described_acquisition(acquisition),
            "oracle": oracle_name(oracle),
            "seed": seed,
            "not_private": not_private,
        }
        config = checked_config(given)
        parts = parts_of(config, pool=pool, model=model, oracle=oracle, evaluation=evaluation, acquisition=acquisition)
        return cls._created(folder, config, parts, plan, initial)

    @classmethod
    def from_config(
        cls,
        folder: Path | str,
        config: CampaignConfig,
        *,
        base: Path | str = ".",
        tell: Callable[[str], None] = lambda words: None,
        warn: Callable[[str], None] | None = None,
        before_creating: "Callable[[CampaignConfig, Parts, Plan], None]" = lambda config, parts, plan: None,
    ) -> "Campaign":
        """A new campaign from a configuration alone. Its relative paths start at `base`.

        `tell` is called with what is good to know, and `warn` (`tell`, unless given) if the noise leaves the model too
        little to learn from. `before_creating` is called when all is planned and nothing is written yet; it may raise
        to stop here.
        """
        # Importing torch takes seconds.
        with doing("opening the data"):
            from dpal.campaign.filled_in import filled_in
            from dpal.campaign.little_signal import noise_warning_of

        made = filled_in(config, Path(base), tell=tell)
        config, parts = made.config, made.parts
        with doing("planning"):
            plan = made.request.plan(parts.pool.unit_count)
            too_noisy = noise_warning_of(parts, made.request, plan)
        if too_noisy is not None:
            (warn or tell)(too_noisy)
        before_creating(config, parts, plan)
        return cls._created(folder, config, parts, plan, ())

    @classmethod
    def open(
        cls,
        folder: Path | str,
        *,
        pool: Pool | None = None,
        model: "ModelLike" = None,
        oracle: OracleLike | None = None,
        evaluation: Pool | None = None,
        evaluation_is_public: bool = False,
        acquisition: Acquisition | None = None,
        tell: Callable[[str], None] = lambda words: None,
    ) -> "Campaign":
        """An existing campaign, ready to run. What its configuration cannot name must be given as at its creation."""
        campaign = cls(folder)
        campaign.load(
            pool=pool,
            model=model,
            oracle=oracle,
            evaluation=evaluation,
            evaluation_is_public=evaluation_is_public,
            acquisition=acquisition,
            tell=tell,
        )
        return campaign

    def load(
        self,
        *,
        pool: Pool | None = None,
        model: "ModelLike" = None,
        oracle: OracleLike | None = None,
        evaluation: Pool | None = None,
        evaluation_is_public: bool = False,
        acquisition: Acquisition | None = None,
        tell: Callable[[str], None] = lambda words: None,
    ) -> None:
        """Load the data and the model, as `open` does, so that the campaign can run."""
        _require_public(evaluation, evaluation_is_public)
        # The database first: a campaign of another version says so, and its configuration may not be readable.
        self.reader.known_state()
        read_config(self.folder / CONFIG)
        config = self.reader.config()
        with doing("opening the data and the model"):
            # Importing torch takes seconds.
            from dpal.campaign.parts import parts_of

            parts = parts_of(
                config, pool=pool, model=model, oracle=oracle, evaluation=evaluation, acquisition=acquisition
            )
            self._use(config, replace(parts, tell=tell))

    @classmethod
    def _created(
        cls, folder: Path | str, config: CampaignConfig, parts: "Parts", plan: Plan, initial: Sequence[str]
    ) -> "Campaign":
        from dpal.campaign.creation import create_folder

        create_folder(Path(folder), config, parts, plan, initial)
        campaign = cls(folder)
        campaign._use(config, parts)
        return campaign

    def _use(self, config: CampaignConfig, parts: "Parts") -> None:
        from dpal.campaign.runner import Runner

        runner = Runner(self.reader, parts)
        require_recorded(self.folder, config, self.reader.known_state().settings)
        self._runner, self._config = runner, config

    @property
    def runner(self) -> "Runner":
        """What carries out steps; only for campaigns that were created or opened with their data and model."""
        if self._runner is None:
            raise TypeError("This campaign was opened without its data and model. Use Campaign.open(...).")
        return self._runner

    @property
    def parts(self) -> "Parts":
        """The campaign's pool, model, acquisition function and oracle."""
        return self.runner.parts

    @parts.setter
    def parts(self, parts: "Parts") -> None:
        self.runner.parts = parts

    @property
    def folder(self) -> Path:
        return self.reader.folder

    @property
    def plan(self) -> Plan:
        """The plan as it was recorded."""
        return self.reader.plan

    @property
    def schedule(self) -> Schedule:
        return self.reader.schedule

    @property
    def config(self) -> CampaignConfig:
        """The configuration that counts now."""
        return self.reader.config() if self._config is None else self._config

    def state(self) -> State:
        """Everything that has happened so far."""
        return self.reader.state()

    def status(self) -> Status:
        """Where the campaign stands."""
        return self.reader.status()

    def running(self) -> str | None:
        """Which process is writing now, in words."""
        return writer_of(self.folder)

    def ledger(self) -> dict[str, object]:
        """What was charged, for any accountant."""
        return self.reader.ledger()

    def contents(self) -> Contents:
        """Ids and fingerprints of the records that the campaign was created with. Never to be released."""
        return self.reader.contents()

    def open_data(self) -> Pool:
        """The pool that the configuration names."""
        return open_data(self.config, folder=self.folder)

    def run(self, *, go_on: bool = False, settings: Sequence[str] = ()) -> Status:
        """Continue until labels are missing or everything is done. It may be called again at any time.

        If there is a held-out set and a model is no better than chance on it, the campaign stops before the next
        charge. `go_on` continues, for this call; `settings` then change how later phases are trained:
        `["training.learning_rate=0.01"]`.
        """
        if settings and not go_on:
            raise InvalidArgument("go_on", go_on, "True where settings are given")
        status = self.runner.run(past_chance=go_on, settings=settings)
        if settings:
            self._config = self.reader.config()
        return status

    def simulated_scores(self, group: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The scores that a query saw, and which records it took. Only in simulations: scores are private."""
        return simulated_scores(self.runner, group)

    def export_model(self, file: Path | str, *, onnx: bool = False) -> dict[str, Any]:
        """Write the newest model's weights as one safetensors file, and its card as FILE.json and FILE.md.

        With `onnx`, also the model itself, next to it. Returns the card.
        """
        from dpal.campaign.recorded_model import export_model

        place, status, model, parts = Path(file), self.status(), self.runner.model, self.parts
        return export_model(place, model, self.state(), status, config=self.config, parts=parts, onnx=onnx)

    def add_answers(self, answers: Mapping[str, object], *, source: str) -> dict[str, int]:
        """Record answers by record id, all or none; returns how many were new, corrected, unchanged and withdrawn.

        Where people give one label for a whole unit, an answer may be by its name, and counts for each of its records.
        An answer is a class's name or number, one target per class for several labels, skip or cannot-tell. `source`
        says who answered, for the campaign's own records.
        """
        contents = self.contents() if self.reader.known_state().created.unit is not None else None
        with writing(self.reader) as writer:
            take_in(writer, self.contents)
            units = {} if contents is None else asked_units(writer.state, contents)
            return labelling.add_answers(writer, answers, source=source, units=units)

    def take_in(self) -> int:
        """Record what people have answered on the labelling page since; returns how many entries. `run` does so too."""
        with writing(self.reader) as writer:
            return take_in(writer, self.reader.contents)

    def wait_for_answers(self) -> None:
        """Take in what people answer on the labelling page, or in Label Studio, until the campaign can continue."""
        given = None if self.config.data is not None else self.runner.given_pool
        waiting.wait_for_answers(self.reader, pool=given, tell=self.parts.tell)

    def sync_labels(self, pool: Pool | None = None) -> Synced:
        """Send what is asked to the configuration's Label Studio server, and take what is answered.

        `pool` is needed where the campaign was made from objects in Python.
        """
        return waiting.sync_labels(self.reader, pool)

    def import_labels(self, file: Path | str, pool: Pool) -> dict[str, int]:
        """Record the answers of a filled-in table, all or none; returns the counts of `add_answers`."""
        return labelling.import_labels(self.reader, Path(file), pool)

    def export_labels(self, folder: Path | str, pool: Pool, *, kind: str = DEFAULT_KIND) -> int:
        """Write the records that wait for an answer to a folder; returns how many there are.

        `kind`: csv, xlsx, jsonl, coco or label-studio.
        """
        return labelling.export_labels(self.reader, Path(folder), pool, kind)[0]

    def close_round(self) -> int:
        """Continue without the missing answers, which may still come later; returns how many are missing."""
        return labelling.close_round(self.reader)

    def identify(self, names: Sequence[str]) -> dict[str, str | None]:
        """The record ids, or units, for names used outside; None if none has the name. Only for who may see ids."""
        contents = self.reader.contents()
        records, units = self.reader.names(contents), self.reader.unit_names(contents)
        return {name: records.id_of(name) or units.id_of(name) for name in names}

    def withdraw(self, ids: Iterable[str] | str = (), *, units: Iterable[str] | str = (), reason: str = "") -> int:
        """Take records, or all records of units, out for good, all or none; returns how many records are new.

        They are not used again. What was charged and released before stays as it is.
        """
        wanted = [ids] if isinstance(ids, str) else list(ids)
        named = [units] if isinstance(units, str) else list(units)
        return withdrawal.withdraw(self.reader, wanted, units=named, reason=reason)

    def give_up(self, *, reason: str = "", settings: Sequence[str] = ()) -> Abandoned:
        """Give up the open training phase, which cannot finish. Later phases start from the newest recorded model.

        `settings` change how later phases are trained: `["training.learning_rate=0.001"]`.
        """
        with writing(self.reader) as writer:
            result = given_up_phase.give_up(writer, reason=reason, settings=settings)
        if self._runner is not None:
            self._config = self.reader.config()
            self._runner.train_with(self._config)
        return result

    def verify(self, *, recompute: bool | None = True) -> Verification:
        """Recompute every ε from the facts and compare with what was planned; without `recompute`, all but the ε.

        None recomputes if that takes seconds and not minutes. The whole chain is read from the disk in any case.
        """
        recorded, sealed = self._facts_and_keys()
        verification = verified(self.folder, recorded, sealed, recompute=recompute)
        if not verification.holds and self.state().last > len(recorded):
            # Someone wrote in the meantime: the files are newer than the facts that they were compared with.
            return self.verify(recompute=recompute)
        return verification

    def _facts_and_keys(self) -> tuple[list[Recorded], list[int]]:
        """Both as of one moment. What a dead writer left behind is removed; a living writer is waited for."""
        self.reader.read_again()
        attempt = 1
        while True:
            with self.reader.open_store() as store:
                sealed = store.keys.charges()
            recorded = list(self.reader.recorded)
            if attempt == _ATTEMPTS or not has_leftovers(self.folder, self.reader.known_state(), sealed):
                return recorded, sealed
            # Opening for writing removes leftovers. If that is not possible, the checks say what is left over.
            with suppress(CampaignBusy, OSError), writing(self.reader):
                pass
            time.sleep(_PAUSE_SECONDS)
            attempt += 1


def _require_public(evaluation: Pool | None, evaluation_is_public: bool) -> None:
    if evaluation is not None and not evaluation_is_public:
        raise InvalidArgument(
            "evaluation_is_public", False, "True: scores on the evaluation's records are shown, so they must be public"
        )
