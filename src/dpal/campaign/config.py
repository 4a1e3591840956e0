"""The configuration of a campaign: what a person writes in a YAML file, checked, with every default filled in."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dpal.errors import InvalidArgument, MissingData
from dpal.planning.api import DEFAULT_EPOCHS, DEFAULT_PLANNER
from dpal.planning.setting import MEAN_SCORE
from dpal.privacy.accountants import DEFAULT_ACCOUNTANT

if TYPE_CHECKING:
    from dpal.training.learner import LearnerSettings


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


class Evaluation(_Source):
    """A held-out set. Its scores are shown in reports, so it must be public, which only people can declare."""

    is_public: Literal[True]
    # For several labels: the classes whose AUC is averaged; all if left out.
    classes: list[str] | None = None


class Model(_Section):
    """A model by name or import path. The numbers of classes and channels come from the pool if left out."""

    name: str
    options: dict[str, Any] = Field(default_factory=dict)


class Text(_Section):
    """How texts become token numbers: the tokenizer of a model, by folder or hub name."""

    tokenizer: str
    max_length: int = 128


class PlanRequest(_Section):
    """The arguments of dpal.plan; the pool's size is the pool's."""

    target_epsilon: float
    target_delta: float | None = None
    initial_size: int | None = None
    query_sizes: list[int] | None = None
    labelling_budget: int | None = None
    phases: int | None = None
    batch_size: int | None = None
    epochs: float = DEFAULT_EPOCHS
    selection: str = "threshold"
    selection_epsilon: float | None = None
    selection_aim: str = MEAN_SCORE
    planner: str = DEFAULT_PLANNER
    accounting: str | None = None
    accountant: str = DEFAULT_ACCOUNTANT


class Augment(_Section):
    """Augmented copies of each image; their gradients are averaged before clipping."""

    copies: int = 1
    flip: bool = False
    crop: int = 0


class Training(_Section):
    """How to train, apart from the plan."""

    optimizer: str = "nadam"
    learning_rate: float = 1e-3
    optimizer_options: dict[str, float] = Field(default_factory=dict)
    max_grad_norm: float = 1.0
    average: float | None = 0.99
    engine: str = "auto"
    precision: str = "float32"
    max_physical_batch_size: int = 512
    augmentation: Augment = Field(default_factory=Augment)
    pixel_mean: float = 0.5
    pixel_deviation: float = 0.25
    device: str = "auto"

    def settings(self) -> "LearnerSettings":
        # Only here: torch takes seconds to import, and most commands do without it.
        from dpal.training.augmentation import Augmentation
        from dpal.training.learner import LearnerSettings
        from dpal.training.loop import TrainingSettings
        from dpal.training.sources import Scaling

        return LearnerSettings(
            optimizer=self.optimizer,
            learning_rate=self.learning_rate,
            optimizer_options=self.optimizer_options,
            average=self.average,
            training=TrainingSettings(
                max_grad_norm=self.max_grad_norm,
                engine=self.engine,
                precision=self.precision,
                max_physical_batch_size=self.max_physical_batch_size,
                augmentation=Augmentation(**self.augmentation.model_dump()),
            ),
            scaling=Scaling(mean=self.pixel_mean, deviation=self.pixel_deviation),
            device=self.device,
        )


class Acquire(_Section):
    """The acquisition function."""

    name: str = "entropy"
    options: dict[str, Any] = Field(default_factory=dict)


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
    # A seed makes the noise predictable: nothing is private then, which not_private must say.
    seed: int | None = None
    not_private: bool = False

    def to_yaml(self) -> str:
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def settings_hash(config: CampaignConfig) -> str:
    """The hash of a configuration without the places of data, which may move and are checked by ids and classes."""
    document = config.model_dump(mode="json", exclude={"data", "evaluation"})
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
        problems = "; ".join(
            f"{'.'.join(str(key) for key in problem['loc'])}: {problem['msg'].lower()}" for problem in error.errors()
        )
        raise InvalidArgument(name, problems, "as docs/campaigns.md describes") from error


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
