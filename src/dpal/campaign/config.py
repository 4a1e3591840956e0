"""The configuration of a campaign: what a person writes in a YAML file, checked, with every default filled in."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dpal.campaign.config_errors import wrong_settings
from dpal.data.unit_rule import UnitRule
from dpal.errors import InvalidArgument, MissingData
from dpal.planning.request import PlanRequest
from dpal.training.settings import AUTOMATIC, ComputeSettings, TrainingSettings


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Source(_Section):
    """Where records come from: a named dataset, or table, image-folder, numpy, hugging-face with their options."""

    source: str
    options: dict[str, Any] = Field(default_factory=dict)


class Data(_Source):
    """The pool."""

    # Only people can declare this: an id such as ill/03.png or SMITH_1950 reveals something and needs an opaque name.
    ids_are_free_of_content: bool = False
    # Which person each record belongs to: the promise is then for a person. None: for each record by itself.
    unit: UnitRule | None = None


class Evaluation(_Source):
    """A held-out set. Its scores are shown in reports, so it must be public, which only people can declare."""

    is_public: Literal[True]
    # For several labels: the classes whose AUC is averaged; all if left out.
    classes: list[str] | None = None
    # The units of the held-out records, if they are not found as those of the pool are.
    unit: UnitRule | None = None
    # Declared by people, where units are named: nobody of the pool is in the held-out set.
    shares_no_unit: bool = False


class Model(_Section):
    """A model by name or import path. The numbers of classes and channels come from the pool if left out."""

    name: str
    options: dict[str, Any] = Field(default_factory=dict)


class Text(_Section):
    """How texts become token numbers: the tokenizer of a model, by folder or hub name."""

    tokenizer: str
    max_length: int = 128


@dataclass(frozen=True, kw_only=True)
class Training(ComputeSettings, TrainingSettings):
    """The section `training`: all fields of both, with their defaults."""

    def __post_init__(self) -> None:
        TrainingSettings.__post_init__(self)
        ComputeSettings.__post_init__(self)


def training_section(
    training: TrainingSettings | Mapping[str, Any] | None, compute: ComputeSettings | None = None
) -> dict[str, Any]:
    """The section for settings that were given in Python."""
    stated = asdict(training) if isinstance(training, TrainingSettings) else dict(training or {})
    return stated if compute is None else {**stated, **asdict(compute)}


class Acquire(_Section):
    """The acquisition function."""

    # Minimum margin; entropy where a record may have several labels.
    name: str = AUTOMATIC
    options: dict[str, Any] = Field(default_factory=dict)


class Labels(_Section):
    """Where people label, if that is another program: so far, Label Studio."""

    source: Literal["label-studio"]
    url: str
    # Where the token is: a file, or an environment variable such as $LABEL_STUDIO_TOKEN. Never the token itself.
    token: str
    # Whether a project is deleted there once its round has ended and its answers are taken in.
    remove_projects: bool = False


class Events(_Section):
    """Whom to tell what happens: a command, which gets the event's name and JSON on its input, and a web address."""

    command: list[str] | None = None
    webhook: str | None = Field(default=None, pattern="^https?://")


class CampaignConfig(_Section):
    """A whole campaign. Data, model or plan are missing if they were given in Python."""

    data: Data | None = None
    text: Text | None = None
    evaluation: Evaluation | None = None
    plan: PlanRequest | None = None
    model: Model | None = None
    training: Training = Field(default_factory=Training)
    acquisition: Acquire = Field(default_factory=Acquire)
    oracle: str = "files"
    labels: Labels | None = None
    events: Events | None = None
    # A seed makes the noise predictable: nothing is private then, which not_private must say.
    seed: int | None = None
    not_private: bool = False

    def to_yaml(self) -> str:
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def settings_hash(config: CampaignConfig) -> str:
    """The hash of a configuration without the places of data, which may move and are checked by ids and classes."""
    document = config.model_dump(mode="json", exclude={"data", "evaluation", "labels", "events"})
    # A place too.
    document["training"].pop("features_cache")
    document["ids_are_free_of_content"] = config.data is not None and config.data.ids_are_free_of_content
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def read_config(file: Path, settings: Sequence[str] = ()) -> CampaignConfig:
    """A configuration from a YAML file, with key=value settings on top."""
    if not file.is_file():
        raise MissingData(f"There is no file {file}.")
    try:
        document: object = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidArgument("the configuration", str(file), f"YAML ({_one_line(error)})") from error
    return checked_config(document if document is not None else {}, settings, name=str(file))


def checked_config(document: object, settings: Sequence[str] = (), *, name: str = "the settings") -> CampaignConfig:
    """A configuration from nested dictionaries. An error names every wrong setting."""
    if not isinstance(document, Mapping):
        raise InvalidArgument("the configuration", name, "names and values")
    merged = dict(cast("Mapping[str, Any]", document))
    for setting in settings:
        merged = _with(merged, setting)
    try:
        return CampaignConfig.model_validate(merged)
    except ValidationError as error:
        raise wrong_settings(error, CampaignConfig, file=name, settings=settings) from error


def _with(document: dict[str, Any], setting: str) -> dict[str, Any]:
    """The document with one a.b.c=value on top; the value is YAML."""
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise InvalidArgument("--set", setting, "key=value, such as plan.target_epsilon=4")
    try:
        value: object = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidArgument("--set", setting, f"a value in YAML ({_one_line(error)})") from error
    return _placed(document, key.strip().split("."), value, setting)


def _placed(document: dict[str, Any], path: list[str], value: object, setting: str) -> dict[str, Any]:
    if len(path) == 1:
        return {**document, path[0]: value}
    inner = document.get(path[0]) or {}
    if not isinstance(inner, dict):
        raise InvalidArgument("--set", setting, f"below a section; {path[0]} is a value")
    return {**document, path[0]: _placed(cast("dict[str, Any]", inner), path[1:], value, setting)}


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
