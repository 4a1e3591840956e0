"""How to train, apart from the plan: every setting and its default, once.

A campaign's YAML, Python and the experiments all build these values. To add a setting, add a field here and use it
where it acts. `TrainingSettings` is what is computed; `ComputeSettings` is where and how fast. This module does without
torch, which takes seconds to import.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from dpal.errors import InvalidArgument
from dpal.privacy import checks

AUTOMATIC = "auto"
# For optimizers that the rule below was not fitted for.
DEFAULT_LEARNING_RATE = 1e-3
# The rule for networks from scratch: fitted on public data (docs/training.md), and never above what was measured.
_ADAPTIVE = ("nadam", "adamw")
_MOVEMENT = 1.5
_LARGEST_LEARNING_RATE = 0.03
PRECISIONS = ("float32", "tf32", "bf16")
_DEVICES = re.compile(r"auto|cpu|cuda(:\d+)?")
# Read by pydantic, which checks these values in a campaign's configuration.
_NO_UNKNOWN_FIELDS = {"extra": "forbid"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Augmentation:
    """How many augmented copies of each image a step sees, and how they may be changed.

    The gradients of a record's copies are averaged before clipping, so copies cost no privacy.
    """

    __pydantic_config__ = _NO_UNKNOWN_FIELDS

    copies: int = 1
    flip: bool = False
    # The most pixels by which an image may be shifted; the border is filled by reflection.
    crop: int = 0

    def __post_init__(self) -> None:
        if self.copies < 1:
            raise InvalidArgument("copies", self.copies, "at least 1")
        if self.crop < 0:
            raise InvalidArgument("crop", self.crop, "at least 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Bytes to numbers around zero: (value / 255 − mean) / deviation. Public constants, not learned from the pool."""

    mean: float = 0.5
    deviation: float = 0.25

    def __post_init__(self) -> None:
        if not self.deviation > 0:
            raise InvalidArgument("deviation", self.deviation, "above 0")


def learning_rate_from_scratch(parameters: int, steps: int) -> float:
    """What a network without training of its own learns best with, by a rule that was fitted (docs/training.md).

    NAdam and AdamW divide a gradient by its size. Where that is mostly noise, every weight makes steps of about the
    learning rate in random directions, and what a unit sums up has moved by about rate · √(steps · inputs) in the end.
    The rule keeps that constant, with √parameters for the number of inputs.
    """
    return min(_LARGEST_LEARNING_RATE, _MOVEMENT / math.sqrt(max(1, steps) * math.sqrt(max(1, parameters))))


# Neither of the two has slots: the section of a configuration inherits from both.
@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """What is computed. All of it is public."""

    __pydantic_config__ = _NO_UNKNOWN_FIELDS

    optimizer: str = "nadam"
    # None: the model's own default; if it has none, `learning_rate_from_scratch` in each phase.
    learning_rate: float | None = None
    optimizer_options: Mapping[str, float] = field(default_factory=dict[str, float])
    max_grad_norm: float = 1.0
    # The decay of the moving average of the weights, which selects and is exported. None: the weights themselves.
    average: float | None = 0.99
    augmentation: Augmentation = field(default_factory=Augmentation)
    pixel_mean: float = Scaling().mean
    pixel_deviation: float = Scaling().deviation

    def __post_init__(self) -> None:
        if self.learning_rate is not None:
            checks.positive("learning_rate", self.learning_rate)
        checks.positive("max_grad_norm", self.max_grad_norm)
        if self.average is not None and not 0 <= self.average < 1:
            raise InvalidArgument("average", self.average, "at least 0 and below 1, or null")
        if not self.pixel_deviation > 0:
            raise InvalidArgument("pixel_deviation", self.pixel_deviation, "above 0")

    def learning_rate_for(self, own: float | None, *, parameters: int, steps: int) -> float:
        """The stated learning rate, or the model's own, or that of a network from scratch in a phase of these steps."""
        if self.learning_rate is not None:
            return self.learning_rate
        if own is not None:
            return own
        if self.optimizer not in _ADAPTIVE:
            return DEFAULT_LEARNING_RATE
        return learning_rate_from_scratch(parameters, steps)

    @property
    def scaling(self) -> Scaling:
        """How bytes become numbers."""
        return Scaling(mean=self.pixel_mean, deviation=self.pixel_deviation)


@dataclass(frozen=True, kw_only=True)
class ComputeSettings:
    """Where and how fast it is computed. Results differ by rounding only."""

    __pydantic_config__ = _NO_UNKNOWN_FIELDS

    # auto: a GPU where there is one.
    device: str = AUTOMATIC
    # auto: the fastest engine that covers the model (dpal.training.engines).
    engine: str = AUTOMATIC
    precision: str = "float32"
    # The most records that go through the model at once. One whole unit goes through even if it has more.
    max_physical_batch_size: int = 512
    # A folder in which campaigns on the same data share features. It is as private as the data. None: not shared.
    features_cache: str | None = None

    def __post_init__(self) -> None:
        if not _DEVICES.fullmatch(self.device):
            raise InvalidArgument("device", self.device, "auto, cpu, cuda, or one GPU such as cuda:1")
        require_precision(self.precision)
        if self.max_physical_batch_size < 1:
            raise InvalidArgument("max_physical_batch_size", self.max_physical_batch_size, "at least 1")


def require_precision(precision: str) -> None:
    """Refuse a precision that dpal does not know."""
    if precision not in PRECISIONS:
        raise InvalidArgument("precision", precision, f"one of {', '.join(PRECISIONS)}")
