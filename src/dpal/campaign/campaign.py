"""The campaign that users hold: created once, opened ever after."""

import inspect
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from dpal.campaign import faults
from dpal.campaign.changed_config import current_config, require_recorded
from dpal.campaign.config import (
    NAME,
    CampaignConfig,
    Model,
    Text,
    Training,
    checked_config,
    read_config,
)
from dpal.campaign.contents import CHUNK, Contents, fingerprints, stamps_of, text_fingerprints
from dpal.campaign.files import sync_folder, write_text, write_whole
from dpal.campaign.folder import CampaignFolder
from dpal.campaign.foreign_code import acquisition_name, foreign_code, is_same_code
from dpal.campaign.giving_up import Abandoned
from dpal.campaign.head import remember
from dpal.campaign.held_out import require_held_out
from dpal.campaign.oracles import Oracle, SimulatedOracle, as_oracle
from dpal.campaign.runner import CampaignRun, Parts, created_fact
from dpal.campaign.state import WEIGHTS
from dpal.campaign.store import Store
from dpal.data import Pool, tokenized
from dpal.data.records import Records, TextRecords
from dpal.data.sources import open_pool, with_absolute_paths
from dpal.errors import InvalidArgument
from dpal.models.registry import build_model, maker_of
from dpal.planning.plan import Plan
from dpal.randomness import new_key
from dpal.selection.acquisition import ACQUISITIONS, Acquisition
from dpal.selection.acquisition_checks import require_separate_records
from dpal.training.learner import Learner
from dpal.training.sources import Readable

# What create and open take as a model: a torch module, a name or import path, or a function that makes one.
ModelLike = Any


class Campaign(CampaignRun):
    """A differentially private active-learning campaign in a folder."""

    config: CampaignConfig

    @classmethod
    def create(
        cls,
        folder: Path | str,
        *,
        plan: Plan,
        pool: Pool,
        model: ModelLike,
        acquisition: str | Acquisition = "entropy",
        oracle: Oracle | Callable[[str, Any], object] | str = "files",
        evaluation: Pool | None = None,
        evaluation_is_public: bool = False,
        training: Training | Mapping[str, Any] | None = None,
        text: Text | Mapping[str, Any] | None = None,
        initial: Sequence[str] = (),
        ids_are_free_of_content: bool = False,
        seed: int | None = None,
        not_private: bool = False,
    ) -> "Campaign":
        """A new campaign from objects. Opening it again takes the same pool and model.

        `initial` are ids of records that are labelled already; otherwise the initial set is drawn at random. Where ids
        are not declared free of content, tables for people hold opaque names in their place.
        """
        if ids_are_free_of_content:
            pool = replace(pool, ids_are_free_of_content=True)
        _require_public(evaluation, evaluation_is_public)
        given = {
            "model": {"name": model, "options": {}} if isinstance(model, str) else None,
            "training": training.model_dump() if isinstance(training, Training) else dict(training or {}),
            "text": text.model_dump() if isinstance(text, Text) else text,
            "acquisition": _described(acquisition),
            "oracle": as_oracle(oracle).name,
            "seed": seed,
            "not_private": not_private,
        }
        config = checked_config(given)
        parts = _parts(config, pool=pool, model=model, oracle=oracle, evaluation=evaluation, acquisition=acquisition)
        _create(Path(folder), config, parts, plan, initial)
        return cls._opened(folder, config, parts)

    @classmethod
    def from_config(
        cls,
        folder: Path | str,
        config: CampaignConfig,
        *,
        base: Path | str = ".",
        tell: Callable[[str], None] = lambda words: None,
    ) -> "Campaign":
        """A new campaign from a configuration alone; its paths are taken from `base` on."""
        config = _resolved(config, Path(base))
        if config.data is None or config.plan is None or config.model is None:
            raise InvalidArgument("the configuration", "without data, plan or model", "complete: all three are needed")
        parts = replace(_parts(config), tell=tell)
        tell(f"{len(parts.pool):,} records in the pool")
        plan = config.plan.plan(len(parts.pool))
        _create(Path(folder), config, parts, plan, ())
        return cls._opened(folder, config, parts)

    @classmethod
    def open(
        cls,
        folder: Path | str,
        *,
        pool: Pool | None = None,
        model: ModelLike = None,
        oracle: Oracle | Callable[[str, Any], object] | str | None = None,
        evaluation: Pool | None = None,
        evaluation_is_public: bool = False,
        acquisition: Acquisition | None = None,
        tell: Callable[[str], None] = lambda words: None,
    ) -> "Campaign":
        """A campaign that exists. What its configuration cannot say must be given, as it was when it was created."""
        _require_public(evaluation, evaluation_is_public)
        read_config(Path(folder) / NAME)
        config = current_config(Path(folder), CampaignFolder(folder).state().settings)
        parts = _parts(config, pool=pool, model=model, oracle=oracle, evaluation=evaluation, acquisition=acquisition)
        return cls._opened(folder, config, replace(parts, tell=tell))

    def export_model(self, file: Path | str) -> dict[str, Any]:
        """The newest model's weights as one safetensors file, and all that is needed to use it elsewhere."""
        facts, config = super().export_model(file), self.config
        records = self._learner_at(self.state()).records
        scaling = {"mean": config.training.pixel_mean, "deviation": config.training.pixel_deviation}
        return facts | {
            # None: it came from Python.
            "model": config.model
            and {
                "name": config.model.name,
                "options": {
                    key: _last_part(value)
                    for key, value in _model_options(config.model, self.parts.pool, records).items()
                },
            },
            "text": config.text and {**config.text.model_dump(), "tokenizer": _last_part(config.text.tokenizer)},
            "inputs": [
                {
                    "name": name,
                    "shape": list(part.shape),
                    "kind": str(part.dtype),
                    # Bytes become (value / 255 − mean) / deviation.
                    "scaling": scaling if part.dtype == np.uint8 else None,
                }
                for name, part in records.form.items()
            ],
        }

    def give_up(self, *, reason: str = "", settings: Sequence[str] = ()) -> Abandoned:
        """Give up the phase that is open, as in CampaignFolder; this campaign goes on with the new settings."""
        result = super().give_up(reason=reason, settings=settings)
        self.config = current_config(self.folder, self.state().settings)
        make, training = self.parts.learner, self.config.training.settings()

        def learner(records: Records) -> Learner:
            made = make(records)
            return Learner(made.model, made.records, multi_label=made.multi_label, settings=training)

        self._learner = self._loaded = None
        self.parts = replace(self.parts, learner=learner)
        return result

    @classmethod
    def _opened(cls, folder: Path | str, config: CampaignConfig, parts: Parts) -> "Campaign":
        campaign = cls(folder, parts)
        require_recorded(Path(folder), config, campaign.state().settings)
        campaign.config = config
        return campaign


def _last_part(value: Any) -> Any:
    """A card is handed on: of a folder on this machine, its name says enough."""
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


def _require_public(evaluation: Pool | None, evaluation_is_public: bool) -> None:
    if evaluation is not None and not evaluation_is_public:
        raise InvalidArgument(
            "evaluation_is_public", False, "True: scores on the evaluation's records are shown, so these are public"
        )


def _resolved(config: CampaignConfig, base: Path) -> CampaignConfig:
    """The configuration with absolute paths, and with the tokenizer that a text classifier needs."""
    changes: dict[str, Any] = {}
    if config.data is not None:
        options = with_absolute_paths(config.data.options, base)
        changes["data"] = config.data.model_copy(update={"options": options})
    if config.evaluation is not None:
        options = with_absolute_paths(config.evaluation.options, base)
        changes["evaluation"] = config.evaluation.model_copy(update={"options": options})
    if config.model is not None and config.model.name == "text-classifier" and config.text is None:
        changes["text"] = Text(tokenizer=str(config.model.options.get("name", "")))
    text = changes.get("text", config.text)
    if text is not None and (base / text.tokenizer).is_dir():
        changes["text"] = text.model_copy(update={"tokenizer": str((base / text.tokenizer).resolve())})
    if config.model is not None and (base / str(config.model.options.get("name", "\0"))).is_dir():
        options = config.model.options | {"name": str((base / config.model.options["name"]).resolve())}
        changes["model"] = config.model.model_copy(update={"options": options})
    return config.model_copy(update=changes)


def _parts(
    config: CampaignConfig,
    *,
    pool: Pool | None = None,
    model: ModelLike = None,
    oracle: Oracle | Callable[[str, Any], object] | str | None = None,
    evaluation: Pool | None = None,
    acquisition: str | Acquisition | None = None,
) -> Parts:
    if (config.seed is not None) != config.not_private:
        raise InvalidArgument(
            "not_private", config.not_private, "true with a seed and false without: a seed makes noise predictable"
        )
    if pool is None:
        if config.data is None:
            raise InvalidArgument("pool", None, "given: this campaign was made from a pool in Python")
        pool = open_pool(config.data.source, config.data.options)
        if config.data.ids_are_free_of_content:
            pool = replace(pool, ids_are_free_of_content=True)
    if evaluation is None and config.evaluation is not None:
        evaluation = open_pool(config.evaluation.source, config.evaluation.options)
    if evaluation is not None and not evaluation.labelled().any():
        raise InvalidArgument("the evaluation's pool", "without labels", "labelled, or left out")
    if evaluation is not None and (evaluation.classes, evaluation.multi_label) != (pool.classes, pool.multi_label):
        raise InvalidArgument("the evaluation's classes", evaluation.classes, f"the pool's: {', '.join(pool.classes)}")
    inputs = _inputs(pool, config.text)
    if model is None and config.model is None:
        raise InvalidArgument("model", None, "given: this campaign was made from a model in Python")
    chosen = model if model is not None and not isinstance(model, str) else None
    scorer = _acquisition(config, pool, acquisition)

    def learner(records: Records) -> Learner:
        built = _built(config.model, pool, records, config.seed) if chosen is None else _module(chosen)
        return Learner(built, records, multi_label=pool.multi_label, settings=config.training.settings())

    return Parts(
        pool=pool,
        inputs=inputs,
        learner=learner,
        acquisition=scorer,
        foreign_code=foreign_code(scorer, chosen if chosen is not None else config.model and config.model.name),
        oracle=as_oracle(config.oracle if oracle is None else oracle),
        evaluation_as_given=evaluation,
        evaluation=evaluation and replace(evaluation, records=_inputs(evaluation, config.text)),
        evaluated_classes=tuple(config.evaluation.classes)
        if config.evaluation is not None and config.evaluation.classes
        else None,
    )


def _acquisition(config: CampaignConfig, pool: Pool, given: str | Acquisition | None) -> Acquisition:
    """The acquisition function, checked: one that mixes records is refused, also when a campaign is opened again."""
    named = given is None or isinstance(given, str)
    found = _named_acquisition(config, pool) if named else _require_acquisition(given)
    if (found.classes, found.multi_label) != (len(pool.classes), pool.multi_label):
        raise InvalidArgument(
            f"the acquisition function {type(found).__qualname__}",
            f"classes={found.classes}, multi_label={found.multi_label}",
            f"classes={len(pool.classes)}, multi_label={pool.multi_label}, as the pool has",
        )
    planned, described = config.acquisition, _described(found)
    if is_same_code(described["name"], planned.name) and not named and described["options"] != planned.options:
        allowed = f"{planned.options}, as when the campaign was made"
        raise InvalidArgument(f"the options of {type(found).__qualname__}", described["options"], allowed)
    require_separate_records(found)
    return found


def _require_acquisition(given: object) -> Acquisition:
    if isinstance(given, Acquisition):
        return given
    raise InvalidArgument(
        "acquisition",
        given,
        f"one of {', '.join(ACQUISITIONS)}, or an object of a class of your own, such as Margin(classes=2), where "
        "Margin is a subclass of dpal.selection.acquisition.Acquisition. A function alone does not say the range of "
        "its scores (docs/selection.md)",
    )


def _named_acquisition(config: CampaignConfig, pool: Pool) -> Acquisition:
    name = config.acquisition.name
    if name not in ACQUISITIONS:
        allowed = f"one of {', '.join(ACQUISITIONS)}"
        if ":" in name:
            allowed = "given again when opening, since it is code of your own: acquisition=..."
        raise InvalidArgument("acquisition", name, allowed)
    try:
        return ACQUISITIONS[name](classes=len(pool.classes), multi_label=pool.multi_label, **config.acquisition.options)
    except TypeError as error:
        raise InvalidArgument(f"the options of {name}", config.acquisition.options, f"its own: {error}") from error


def _inputs(pool: Pool, text: Text | None) -> Records:
    """What the model reads: people read texts, models read numbers."""
    if not isinstance(pool.records, TextRecords):
        return pool.records
    if text is None:
        raise InvalidArgument("text", None, "given for a pool of texts: the tokenizer (a model's folder or hub name)")
    return tokenized(pool, model=text.tokenizer, max_length=text.max_length).records


def _module(given: ModelLike) -> Any:
    """A torch module as it is, or what a function makes."""
    return given if hasattr(given, "state_dict") or not callable(given) else given()


def _described(acquisition: str | Acquisition) -> dict[str, Any]:
    """An acquisition function as the configuration has it."""
    if isinstance(acquisition, str):
        return {"name": acquisition}
    _require_acquisition(acquisition)
    own = [each.name for each in fields(acquisition) if each.name not in ("classes", "multi_label")]
    options = {name: getattr(acquisition, name) for name in own}
    try:
        options = json.loads(json.dumps(options))
    except (TypeError, ValueError) as error:
        allowed = "numbers, texts, or lists of these: they are part of the configuration"
        raise InvalidArgument(f"the fields of {type(acquisition).__qualname__}", own, allowed) from error
    return {"name": acquisition_name(acquisition), "options": options}


def _built(model: Model | None, pool: Pool, records: Readable, seed: int | None) -> Any:
    if model is None:
        raise InvalidArgument("model", None, "given: this campaign was made from a model in Python")
    return build_model(model.name, _model_options(model, pool, records), seed=seed)


def _model_options(model: Model, pool: Pool, records: Readable) -> dict[str, Any]:
    """With classes and channels from the pool where the model's function takes them and nobody said."""
    options = dict(model.options)
    takes = inspect.signature(maker_of(model.name)).parameters
    if "classes" in takes:
        options.setdefault("classes", len(pool.classes))
    if "channels" in takes and "" in records.form and len(records.form[""].shape) == 3:
        options.setdefault("channels", records.form[""].shape[0])
    return options


def _create(folder: Path, config: CampaignConfig, parts: Parts, plan: Plan, initial: Sequence[str]) -> None:
    """Check everything, then make the folder, whole or not at all."""
    folder = folder.absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidArgument("the folder", str(folder), "one that is new or empty. Nothing was changed")
    pool = parts.pool
    if plan.setting.pool_size != len(pool):
        raise InvalidArgument("the plan's pool size", plan.setting.pool_size, f"{len(pool):,}, the pool's")
    if not plan.selection_is_private and not config.not_private:
        raise InvalidArgument(
            "the selection",
            "none",
            "a private one. For a simulation in which nothing is private, say so: not_private and a seed",
        )
    if initial:
        pool.positions(initial)
        if len(set(initial)) != plan.groups[0].size or len(set(initial)) != len(initial):
            raise InvalidArgument(
                "the number of initial records", len(set(initial)), f"{plan.groups[0].size:,}, as the plan says"
            )
    key = new_key()
    contents, broken = _read_all(pool, key)
    if broken:
        parts.tell(
            f"{broken:,} records hold values that are not finite: they teach nothing, and their labels are wasted. "
            "Better repair them first. (This is about private records.)"
        )
    if parts.evaluation_as_given is not None:
        held_out, _ = _read_all(parts.evaluation_as_given, key)
        require_held_out(parts.evaluation_as_given, pool, contents, held_out.fingerprints)
    if isinstance(parts.oracle, SimulatedOracle) and pool.labels is None:
        raise InvalidArgument("oracle", "simulated", f"files: the pool {pool.name} has no labels of its own")
    learner = parts.learner(parts.inputs)
    if parts.evaluation is not None:
        _require_same_shape(learner.records, parts.evaluation.records)
    learner.rehearse(len(pool.classes), parts.acquisition.passes)
    draft = folder.with_name(f".{folder.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        # Labels and, while a step is under way, its key: for the owner's eyes.
        draft.mkdir(mode=0o700, parents=True)
        for part in ("checkpoints", "reports"):
            (draft / part).mkdir()
        faults.reached("create.folder")
        write_whole(draft / WEIGHTS, learner.save)
        faults.reached("create.weights")
        contents.write(draft)
        faults.reached("create.contents")
        Store.create(draft, secret=key)
        store = Store(draft)
        fact = created_fact(
            plan=plan,
            pool=pool,
            acquisition=parts.acquisition,
            initial=initial,
            weights=draft / WEIGHTS,
            contents=contents,
            config=config,
            foreign_code=parts.foreign_code,
        )
        try:
            remember(draft, [store.append(fact, after=0)])
        finally:
            store.close()
        faults.reached("create.database")
        write_text(draft / NAME, config.to_yaml())
        faults.reached("create.configuration")
        if folder.exists():
            folder.rmdir()
        draft.replace(folder)
        sync_folder(folder.parent)
        faults.reached("create.moved")
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _read_all(pool: Pool, key: bytes) -> tuple[Contents, int]:
    """Every record once: a broken one is better found now than in week 2, when the error would tell about it.

    Says what each held, and how many hold values that are not finite.
    """
    records = pool.records
    everyone = np.arange(len(records))
    stamps = stamps_of(records, everyone, key)
    found: list[bytes] = []
    broken = 0
    starts = range(0, len(records), CHUNK)
    if isinstance(records, TextRecords):
        found, starts = text_fingerprints(records.texts, key), range(0)
    for start in track(starts, description=f"checking {pool.name}", console=Console(stderr=True), transient=True):
        rows = records.read(everyone[start : start + CHUNK])
        found += fingerprints(rows, key)
        for part in rows.values() if isinstance(rows, dict) else (rows,):
            if part.dtype.kind == "f":
                broken += int((~np.isfinite(part.reshape(len(part), -1)).all(axis=1)).sum())
    ids = tuple(pool.ids.tolist())
    return Contents(ids=ids, fingerprints=tuple(found), stamps=tuple(stamps), key=key), broken


def _require_same_shape(records: Readable, others: Readable) -> None:
    wanted, found = ({name: part.shape for name, part in each.form.items()} for each in (records, others))
    if found != wanted:
        shown, allowed = (shapes.get("", shapes) for shapes in (found, wanted))
        raise InvalidArgument("the shape of the evaluation's records", shown, f"{allowed}, the pool's")
