"""Mechanisms that turn scores into ids. Each says what it releases as a value of `privacy/`, and draws from that value.

All work on scores rounded to a public grid and on exact randomness, so floating point leaks nothing.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpal.errors import InvalidArgument
from dpal.privacy import checks
from dpal.privacy.campaign_history import Selection
from dpal.privacy.mechanisms import MOST_GRID_STEPS, DiscreteGaussian, DiscreteLaplace, PureDP
from dpal.privacy.one_shot import one_shot_epsilon
from dpal.randomness import Randomness
from dpal.selection.grid import Grid, Scores, on_grid

Positions = NDArray[np.int64]
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chosen:
    """What a selection releases: the records to label and, of threshold sampling, its threshold and a surplus.

    The surplus is retired for good: neither labelled nor offered again.
    """

    to_label: NDArray[Any] = field(repr=False)
    retired: NDArray[Any] = field(repr=False)
    threshold: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionMechanism(ABC):
    """Scores in, ids out. `highest` bounds the scores from above: larger ones count as this (the paper's clip)."""

    name: ClassVar[str]
    is_private: ClassVar[bool] = True
    query_size: int
    highest: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "query_size", checks.count("query_size", self.query_size))
        object.__setattr__(self, "highest", checks.positive("highest", self.highest))

    @property
    @abstractmethod
    def released(self) -> Selection:
        """What a selection tells about one record, for the accountants."""

    @property
    def grid_steps(self) -> int:
        return MOST_GRID_STEPS

    def select(
        self, scores: Scores, *, randomness: Randomness, ids: Sequence[Any] | NDArray[Any] | None = None
    ) -> Chosen:
        """The ids of the chosen records. Without ids, a record's id is its position in the scores."""
        grid = on_grid(scores, highest=self.highest, steps=self.grid_steps)
        names = None if ids is None else _names(ids)
        if names is not None and len(names) != len(grid):
            raise InvalidArgument("the number of ids", len(names), f"{len(grid):,}, one for each score")
        if len(grid) == 0:
            raise InvalidArgument("the number of scores", 0, "at least 1: there is no unlabelled record to select")
        chosen = self._choose(grid, randomness)
        if names is None:
            return chosen
        return replace(chosen, to_label=names[chosen.to_label], retired=names[chosen.retired])

    @abstractmethod
    def _choose(self, grid: Grid, randomness: Randomness) -> Chosen:
        """The chosen positions."""

    def _check_size(self, available: int) -> None:
        if self.query_size > available:
            raise InvalidArgument("query_size", self.query_size, f"at most the {available:,} unlabelled records")


def _names(ids: object) -> NDArray[Any]:
    """Ids as an array that keeps each as it is: numpy would make floats of large integers and strings of mixed ones."""
    if isinstance(ids, np.ndarray):
        if ids.ndim != 1:
            raise InvalidArgument("the shape of the ids", ids.shape, "one id for each score")
        return ids
    if isinstance(ids, str | bytes) or not isinstance(ids, Sequence):
        raise InvalidArgument("ids", type(ids).__name__, "an array, a list or a tuple")
    names = np.empty(len(ids), dtype=object)
    for position, name in enumerate(ids):
        names[position] = name
    return names


NOBODY: Positions = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform(SelectionMechanism):
    """Any records, each as likely as any other. It never looks at a score, so it costs nothing."""

    name: ClassVar[str] = "random"

    @property
    def released(self) -> Selection:
        return Selection(choice=None)

    def _choose(self, grid: Grid, randomness: Randomness) -> Chosen:
        self._check_size(len(grid))
        return Chosen(to_label=randomness.subset(len(grid), self.query_size), retired=NOBODY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Top(SelectionMechanism):
    """The highest scores. NOT private: an upper bound for simulations."""

    name: ClassVar[str] = "none"
    is_private: ClassVar[bool] = False

    @property
    def released(self) -> Selection:
        raise InvalidArgument("the selection", "none", "a private one where its privacy is asked for")

    def _choose(self, grid: Grid, randomness: Randomness) -> Chosen:
        self._check_size(len(grid))
        return Chosen(to_label=top(grid, self.query_size, randomness), retired=NOBODY)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyTop(SelectionMechanism):
    """The highest noisy scores: each record's score gets noise of its own, the rest is post-processing."""

    name: ClassVar[str] = "noisy"
    noise: DiscreteLaplace | DiscreteGaussian

    @property
    def released(self) -> Selection:
        return Selection(choice=self.noise)

    @property
    def grid_steps(self) -> int:
        return self.noise.grid_steps

    def _choose(self, grid: Grid, randomness: Randomness) -> Chosen:
        candidates = np.arange(len(grid))
        if isinstance(self.noise, DiscreteGaussian) and self.noise.participation < 1:
            # The coins do not look at the scores. Fewer may be left than are wanted: then fewer are selected.
            candidates = np.flatnonzero(randomness.coins(Fraction(self.noise.participation), len(grid)))
        else:
            self._check_size(len(grid))
        noisy = np.empty(len(candidates), dtype=np.int64)
        for start in range(0, len(candidates), _CHUNK):
            part = slice(start, start + _CHUNK)
            noisy[part] = grid[candidates[part]] + self._noise(randomness, len(candidates[part]))
        highest = top(noisy, min(self.query_size, len(noisy)), randomness)
        return Chosen(to_label=candidates[highest], retired=NOBODY)

    def _noise(self, randomness: Randomness, count: int) -> NDArray[np.int64]:
        if isinstance(self.noise, DiscreteLaplace):
            return randomness.discrete_laplace(Fraction(self.noise.epsilon) / self.noise.grid_steps, count)
        return randomness.discrete_gaussian(self.noise.variance, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneShotExponential(SelectionMechanism):
    """Records one after the other, without replacement, by weights exp(weight_epsilon · score / highest).

    The same distribution as the highest scores after Gumbel noise.
    """

    name: ClassVar[str] = "exponential"
    weight_epsilon: float
    # The ε holds for pools of at least this size; smaller ones are refused.
    unlabelled: int

    def __post_init__(self) -> None:
        super(OneShotExponential, self).__post_init__()
        self.released  # noqa: B018 (checks the sizes)

    @property
    def released(self) -> Selection:
        return Selection(choice=PureDP(epsilon=one_shot_epsilon(self.weight_epsilon, self.unlabelled, self.query_size)))

    def _choose(self, grid: Grid, randomness: Randomness) -> Chosen:
        if len(grid) < self.unlabelled:
            allowed = f"at least {self.unlabelled:,}, for which the mechanism's ε was computed"
            raise InvalidArgument("the number of scores", len(grid), allowed)
        self._check_size(len(grid))
        unit = Fraction(self.weight_epsilon) / self.grid_steps
        picks = randomness.exponential_picks(self.grid_steps - grid.astype(np.int64), unit, self.query_size)
        return Chosen(to_label=np.sort(picks), retired=NOBODY)


def top(values: NDArray[np.integer], count: int, randomness: Randomness) -> Positions:
    """The positions of the largest values, ties broken at random, in rising order."""
    if count == 0:
        return NOBODY
    last = np.partition(values, len(values) - count)[len(values) - count]
    above, ties = np.flatnonzero(values > last), np.flatnonzero(values == last)
    return np.sort(np.concatenate([above, ties[randomness.subset(len(ties), count - len(above))]]))
