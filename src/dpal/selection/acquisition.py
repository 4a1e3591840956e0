"""Acquisition scores from a model's probabilities or logits. Higher is more uncertain; every class declares its range.

Rows are records. Single-label classes compete through a softmax; multi-label classes are independent sigmoids.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from dpal.errors import InvalidArgument

Array = NDArray[np.float64]
_LARGEST_ERROR_OF_SUMS = 0.05


def probabilities_from_logits(logits: NDArray[np.floating], *, multi_label: bool) -> Array:
    """Probabilities in float64, safe for logits of any finite size; NaN for a record whose logits are not finite."""
    exact = np.asarray(logits, dtype=np.float64)
    broken = ~np.isfinite(exact).all(axis=-1, keepdims=True)
    finite = np.where(broken, 0.0, exact)
    found = scipy.special.expit(finite) if multi_label else np.exp(scipy.special.log_softmax(finite, axis=-1))
    return np.where(broken, np.nan, found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquisition(ABC):
    """A score for each record. `clip` is the default bound from above that the paper's mechanisms use."""

    name: ClassVar[str]
    classes: int
    multi_label: bool = False

    def __post_init__(self) -> None:
        if self.classes < (1 if self.multi_label else 2):
            raise InvalidArgument("classes", self.classes, "at least 2 (at least 1 for multi-label)")

    @property
    def highest(self) -> float:
        """The largest score there can be; the smallest is 0, a blank record's."""
        return 1.0

    @property
    def clip(self) -> float:
        return self.highest

    @property
    def passes(self) -> int:
        """How many stochastic forward passes the scores need; more than one means (passes, records, classes)."""
        return 1

    def scores(self, probabilities: NDArray[np.floating]) -> Array:
        """The scores of records with these class probabilities.

        A record whose numbers are not probabilities (a network that overflowed) scores 0. It is not an error: an error
        would reveal that there is such a record.
        """
        exact = self._in_shape(probabilities)
        # bfloat16 networks give sums that are off by a percent.
        in_order: NDArray[np.bool_] = np.asarray(((exact >= 0) & (exact <= 1)).all(axis=-1))
        if not self.multi_label:
            in_order &= np.abs(np.where(in_order[..., None], exact, 0.0).sum(axis=-1) - 1) < _LARGEST_ERROR_OF_SUMS
        if self.passes > 1:
            in_order = np.asarray(in_order.all(axis=0))
        found = self._scores(np.where(in_order[..., None], exact, 1 / self.classes))
        # Rounding may leave a score a hair outside its range.
        return np.where(in_order, np.clip(found, 0.0, self.highest), 0.0)

    @abstractmethod
    def _scores(self, probabilities: Array) -> Array: ...

    def _in_shape(self, probabilities: NDArray[np.floating]) -> Array:
        exact = np.asarray(probabilities, dtype=np.float64)
        wanted = 2 if self.passes == 1 else 3
        if exact.ndim != wanted or exact.shape[-1] != self.classes:
            shape = "(records, classes)" if wanted == 2 else "(passes, records, classes)"
            raise InvalidArgument("the shape of the probabilities", exact.shape, f"{shape} with {self.classes} classes")
        return exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Random(Acquisition):
    """No score at all: every record is as good as any other. Selecting by it reads no record and costs nothing."""

    name: ClassVar[str] = "random"

    def _scores(self, probabilities: Array) -> Array:
        return np.zeros(len(probabilities))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastConfidence(Acquisition):
    """One minus the largest probability; multi-label: the mean of 1 − max(p, 1 − p) over the labels."""

    name: ClassVar[str] = "least-confidence"

    @property
    def highest(self) -> float:
        return 0.5 if self.multi_label else 1 - 1 / self.classes

    def _scores(self, probabilities: Array) -> Array:
        if self.multi_label:
            return (1 - np.maximum(probabilities, 1 - probabilities)).mean(axis=-1)
        return 1 - probabilities.max(axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimumMargin(Acquisition):
    """One minus the distance between the two largest probabilities. There is no multi-label form."""

    name: ClassVar[str] = "minimum-margin"

    def __post_init__(self) -> None:
        super(MinimumMargin, self).__post_init__()
        if self.multi_label:
            allowed = "False: independent labels have no two largest probabilities. Use entropy or least-confidence"
            raise InvalidArgument("multi_label of minimum-margin", True, allowed)

    def _scores(self, probabilities: Array) -> Array:
        two = np.partition(probabilities, self.classes - 2, axis=-1)[..., -2:]
        return 1 - (two[..., 1] - two[..., 0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Entropy(Acquisition):
    """The entropy of the probabilities over its largest value; multi-label: the mean binary entropy."""

    name: ClassVar[str] = "entropy"

    @property
    def clip(self) -> float:
        return 0.8

    def _scores(self, probabilities: Array) -> Array:
        return _normalised_entropy(probabilities, multi_label=self.multi_label)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bald(Acquisition):
    """Disagreement of stochastic passes: the entropy of their mean less the mean of their entropies."""

    name: ClassVar[str] = "bald"
    number_of_passes: int = 10

    def __post_init__(self) -> None:
        super(Bald, self).__post_init__()
        if self.number_of_passes < 2:
            raise InvalidArgument("number_of_passes", self.number_of_passes, "at least 2: one pass cannot disagree")

    @property
    def clip(self) -> float:
        return 0.5

    @property
    def passes(self) -> int:
        return self.number_of_passes

    def _scores(self, probabilities: Array) -> Array:
        mean = probabilities.mean(axis=0)
        inner = _normalised_entropy(probabilities, multi_label=self.multi_label).mean(axis=0)
        return _normalised_entropy(mean, multi_label=self.multi_label) - inner


def _normalised_entropy(probabilities: Array, *, multi_label: bool) -> Array:
    # xlogy is 0 at p = 0, where p·log p ends.
    if multi_label:
        binary = -scipy.special.xlogy(probabilities, probabilities) - scipy.special.xlogy(
            1 - probabilities, 1 - probabilities
        )
        return binary.mean(axis=-1) / math.log(2)
    return -scipy.special.xlogy(probabilities, probabilities).sum(axis=-1) / math.log(probabilities.shape[-1])
