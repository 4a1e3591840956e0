"""What a campaign works with in addition to its folder: pool, model, acquisition function, oracle, held-out set."""

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from dpal.campaign.config import CampaignConfig, Model, Text
from dpal.campaign.encoding import kind_of
from dpal.campaign.foreign_code import acquisition_name, foreign_code, is_same_code
from dpal.data import Pool, tokenized
from dpal.data.large_pool import LargePool
from dpal.data.records import Records, TextRecords
from dpal.data.sources import open_pool, with_absolute_file, with_absolute_paths
from dpal.data.unit_rule import in_no_unit_of_a_pool
from dpal.errors import BadData, DpalError, InvalidArgument
from dpal.imports import named
from dpal.labels.oracles import Oracle, OracleLike, as_oracle
from dpal.models.encoder import Encoder
from dpal.models.encoders import TRANSFORMERS
from dpal.models.features import NAME as FEATURES
from dpal.models.features import Features, seeded_head
from dpal.models.registry import build_model, maker_of
from dpal.selection.acquisition import Acquisition, Entropy, MinimumMargin
from dpal.selection.acquisition_checks import require_separate_records
from dpal.selection.registry import ACQUISITIONS
from dpal.training.learner import Learner, device_for
from dpal.training.optimizers import trainable_parameters
from dpal.training.settings import AUTOMATIC
from dpal.training.sources import Readable

# What creating and opening take as a model: a torch module, a name or import path, a function that makes one, or an
# encoder, alone or with the options of its head (`Features`).
ModelLike = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The live objects of a campaign. None of them is in the database."""

    pool: Pool
    # What the model reads of the pool: texts as token numbers, anything else as it is. With an encoder, the features;
    # before the campaign is opened, the records.
    inputs: Records
    encoder: Encoder | None
    learner: Callable[[Records], Learner]
    # How many numbers training changes. Calling it builds the model.
    parameters: Callable[[], int]
    acquisition: Acquisition
    oracle: Oracle
    # A public held-out set, as it was given and as the model reads it, and for several labels the evaluated classes.
    evaluation_as_given: Pool | None = None
    evaluation: Pool | None = None
    evaluated_classes: tuple[str, ...] | None = None
    # Import paths of an acquisition function, a model and an oracle that are not dpal's.
    foreign_code: tuple[str, ...] = ()
    # Called with messages for people about what happens.
    tell: Callable[[str], None] = field(default=lambda words: None)


def parts_of(
    config: CampaignConfig,
    *,
    pool: Pool | None = None,
    model: ModelLike = None,
    oracle: OracleLike | None = None,
    evaluation: Pool | None = None,
    acquisition: str | Acquisition | None = None,
) -> Parts:
    """The parts that a configuration names, or those given in Python in their place."""
    if (config.seed is not None) != config.not_private:
        raise InvalidArgument(
            "not_private", config.not_private, "true with a seed and false without: a seed makes noise predictable"
        )
    if pool is None:
        pool = configured_pool(config)
    if evaluation is None and config.evaluation is not None:
        evaluation = _configured_evaluation(config, pool)
    if evaluation is not None:
        _require_comparable(evaluation, pool)
    if model is None and config.model is None:
        raise _model_missing()
    given_model = model if model is not None and not isinstance(model, str) else None
    features = _features(config.model) if given_model is None else Features.of(given_model)
    encoder = None
    if features is not None:
        encoder = features.loaded_encoder(kind_of(pool.records), image_side=_image_side(pool))
    if encoder is not None:
        encoder.to(device_for(config.training))
    scorer = _acquisition(config, pool, acquisition)
    answering = as_oracle(config.oracle if oracle is None else oracle)

    def network(records: Records) -> Any:
        if encoder is not None and features is not None:
            return seeded_head(encoder, classes=len(pool.classes), hidden=features.hidden, seed=config.seed)
        return _built(config.model, pool, records, config.seed) if given_model is None else _module(given_model)

    def learner(records: Records) -> Learner:
        training = config.training
        built = network(records)
        return Learner(built, records, multi_label=pool.multi_label, settings=training, compute=training)

    inputs = _inputs(pool, config.text, encoder)

    model_code = given_model if given_model is not None else config.model and config.model.name
    return Parts(
        pool=pool,
        inputs=inputs,
        encoder=encoder,
        learner=learner,
        parameters=lambda: trainable_parameters(network(inputs)),
        acquisition=scorer,
        foreign_code=foreign_code(scorer, model_code, answering, encoder),
        oracle=answering,
        evaluation_as_given=evaluation,
        evaluation=evaluation and replace(evaluation, records=_inputs(evaluation, config.text, encoder)),
        evaluated_classes=tuple(config.evaluation.classes)
        if config.evaluation is not None and config.evaluation.classes
        else None,
    )


def _image_side(pool: Pool) -> int | None:
    """The smaller side of the pool's images; None if they are something else."""
    if isinstance(pool.records, TextRecords) or "" not in pool.records.form:
        return None
    shape = pool.records.form[""].shape
    return min(shape[1:]) if len(shape) == 3 else None


def configured_pool(config: CampaignConfig) -> Pool:
    """The pool that the configuration names, with what it declares about it."""
    if config.data is None:
        raise InvalidArgument("pool", None, "given: this campaign was created with a pool in Python")
    pool = open_pool(config.data.source, config.data.options, config.data.unit)
    return replace(pool, ids_are_free_of_content=True) if config.data.ids_are_free_of_content else pool


def _configured_evaluation(config: CampaignConfig, pool: Pool) -> Pool:
    """The held-out set; its units are found as those of the pool are, unless the configuration says otherwise."""
    given = config.evaluation
    if given is None:
        raise InvalidArgument("evaluation", None, "given")
    rule = None if pool.units is None or given.shares_no_unit else given.unit or (config.data and config.data.unit)
    try:
        opened = open_pool(given.source, given.options, rule or None)
    except DpalError as error:
        error.add_note("This is about the held-out set (evaluation).")
        if rule is not None and _opens(given.source, given.options):
            error.add_note(
                f"Nobody may be in it and in the pool, so every {pool.unit} in it must be known. Say how with "
                "evaluation.unit, or declare that no one is in both: evaluation.shares_no_unit: true."
            )
        raise
    if isinstance(opened, LargePool):
        raise InvalidArgument(
            "evaluation.source", given.source, "one whose records are at hand, such as table, numpy or image-folder"
        )
    return in_no_unit_of_a_pool(opened) if pool.units is not None and given.shares_no_unit else opened


def _opens(source: str, options: dict[str, Any]) -> bool:
    """Whether the data can be opened without their units: then it is the units that are wrong."""
    try:
        open_pool(source, options)
    except DpalError:
        return False
    return True


def _require_comparable(evaluation: Pool, pool: Pool) -> None:
    if not evaluation.labelled().any():
        raise BadData("The evaluation's pool has no labels: give one with labels, or leave it out.")
    if (evaluation.classes, evaluation.multi_label) != (pool.classes, pool.multi_label):
        raise BadData(
            f"The evaluation's classes are {', '.join(evaluation.classes)}, but the pool's are "
            f"{', '.join(pool.classes)}. They must be the same."
        )


def with_training(parts: Parts, config: CampaignConfig) -> Parts:
    """The parts with a learner that trains with this configuration's settings."""
    make, training = parts.learner, config.training

    def learner(records: Records) -> Learner:
        made = make(records)
        return Learner(made.model, made.records, multi_label=made.multi_label, settings=training, compute=training)

    return replace(parts, learner=learner)


def resolved_config(config: CampaignConfig, base: Path) -> CampaignConfig:
    """The configuration with absolute paths, and with the tokenizer that a text classifier needs."""
    changes: dict[str, Any] = {}
    if config.data is not None:
        options = with_absolute_paths(config.data.options, base)
        unit = config.data.unit and with_absolute_file(config.data.unit, base)
        changes["data"] = config.data.model_copy(update={"options": options, "unit": unit})
    if config.evaluation is not None:
        options = with_absolute_paths(config.evaluation.options, base)
        unit = config.evaluation.unit and with_absolute_file(config.evaluation.unit, base)
        changes["evaluation"] = config.evaluation.model_copy(update={"options": options, "unit": unit})
    if config.model is not None and config.model.name == "text-classifier" and config.text is None:
        changes["text"] = Text(tokenizer=str(config.model.options.get("name", "")))
    text = changes.get("text", config.text)
    if text is not None and (base / text.tokenizer).is_dir():
        changes["text"] = text.model_copy(update={"tokenizer": str((base / text.tokenizer).resolve())})
    if config.model is not None and (base / str(config.model.options.get("name", "\0"))).is_dir():
        options = config.model.options | {"name": str((base / config.model.options["name"]).resolve())}
        changes["model"] = config.model.model_copy(update={"options": options})
    if config.model is not None and str(name := config.model.options.get("encoder")).startswith(TRANSFORMERS):
        folder = base / Path(str(name).removeprefix(TRANSFORMERS)).expanduser()
        if folder.is_dir():
            options = config.model.options | {"encoder": f"{TRANSFORMERS}{folder.resolve()}"}
            changes["model"] = config.model.model_copy(update={"options": options})
    if (cache := config.training.features_cache) is not None:
        place = str((base / Path(cache).expanduser()).resolve())
        changes["training"] = replace(config.training, features_cache=place)
    return config.model_copy(update=changes)


def _acquisition(config: CampaignConfig, pool: Pool, given: str | Acquisition | None) -> Acquisition:
    """The acquisition function, checked: one that mixes records is refused, also when a campaign is opened again."""
    by_name = given is None or isinstance(given, str)
    scorer = _named_acquisition(config, pool) if by_name else _require_acquisition(given)
    if (scorer.classes, scorer.multi_label) != (len(pool.classes), pool.multi_label):
        raise InvalidArgument(
            f"the acquisition function {type(scorer).__qualname__}",
            f"classes={scorer.classes}, multi_label={scorer.multi_label}",
            f"classes={len(pool.classes)}, multi_label={pool.multi_label}, as the pool has",
        )
    planned, described = config.acquisition, described_acquisition(scorer)
    if is_same_code(described["name"], planned.name) and not by_name and described["options"] != planned.options:
        allowed = f"{planned.options}, as when the campaign was created"
        raise InvalidArgument(f"the options of {type(scorer).__qualname__}", described["options"], allowed)
    require_separate_records(scorer)
    return scorer


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
    if name == AUTOMATIC:
        # Measured with the private cut, the margin is better than entropy or equal (benchmarks/active_learning.py).
        name = Entropy.name if pool.multi_label else MinimumMargin.name
    try:
        kind = named("acquisition", name, ACQUISITIONS)
    except InvalidArgument as error:
        if ":" not in name:
            raise
        allowed = "importable, or given again when opening, since it is code of your own: acquisition=..."
        raise InvalidArgument("acquisition", name, allowed) from error
    if not isinstance(kind, type) or not issubclass(kind, Acquisition):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("acquisition", name, "a class derived from dpal.selection.Acquisition")
    try:
        return kind(classes=len(pool.classes), multi_label=pool.multi_label, **config.acquisition.options)
    except TypeError as error:
        raise InvalidArgument(f"the options of {name}", config.acquisition.options, f"its own: {error}") from error


def described_acquisition(acquisition: str | Acquisition) -> dict[str, Any]:
    """An acquisition function as the configuration has it."""
    if isinstance(acquisition, str):
        return {"name": acquisition}
    _require_acquisition(acquisition)
    own = [option.name for option in fields(acquisition) if option.name not in ("classes", "multi_label")]
    options = {name: getattr(acquisition, name) for name in own}
    try:
        options = json.loads(json.dumps(options))
    except (TypeError, ValueError) as error:
        allowed = "numbers, texts, or lists of these: they are part of the configuration"
        raise InvalidArgument(f"the fields of {type(acquisition).__qualname__}", own, allowed) from error
    return {"name": acquisition_name(acquisition), "options": options}


def _features(model: Model | None) -> Features | None:
    """The encoder and head that a configuration names, if it does."""
    if model is None or model.name != FEATURES:
        return None
    try:
        return Features(**model.options)
    except TypeError as error:
        raise InvalidArgument("the options of the model features", model.options, f"its own: {error}") from error


def _inputs(pool: Pool, text: Text | None, encoder: Encoder | None) -> Records:
    """What the model reads: people read texts, models read numbers. Encoders read records themselves."""
    if encoder is not None or not isinstance(pool.records, TextRecords):
        return pool.records
    if text is None:
        raise InvalidArgument("text", None, "given for a pool of texts: the tokenizer (a model's folder or hub name)")
    return tokenized(pool, model=text.tokenizer, max_length=text.max_length).records


def _module(given: ModelLike) -> Any:
    """A torch module as it is, or what a function makes."""
    return given if hasattr(given, "state_dict") or not callable(given) else given()


def _built(model: Model | None, pool: Pool, records: Readable, seed: int | None) -> Any:
    if model is None:
        raise _model_missing()
    return build_model(model.name, model_options(model, pool, records), seed=seed)


def _model_missing() -> InvalidArgument:
    return InvalidArgument("model", None, "given: this campaign was created with a model in Python")


def model_options(model: Model, pool: Pool, records: Readable) -> dict[str, Any]:
    """The model's options, with classes and channels from the pool if its function takes them and they are not set."""
    options = dict(model.options)
    if model.name == FEATURES:
        return options | {"classes": len(pool.classes)}
    takes = inspect.signature(maker_of(model.name)).parameters
    if "classes" in takes:
        options.setdefault("classes", len(pool.classes))
    if "channels" in takes and "" in records.form and len(records.form[""].shape) == 3:
        options.setdefault("channels", records.form[""].shape[0])
    return options
