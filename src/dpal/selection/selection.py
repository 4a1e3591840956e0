"""What every kind of selection is: one object that is planned, charged, written down and run.

All kinds work on scores rounded to a public grid and on exact randomness, so floating point leaks nothing.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self, get_type_hints

import numpy as np
from numpy.typing import NDArray

from dpal.errors import InvalidArgument
from dpal.imports import import_path
from dpal.privacy import checks
from dpal.privacy.campaign_history import Released, pure_epsilon
from dpal.privacy.mechanisms import MOST_GRID_STEPS
from dpal.privacy.renyi import renyi_curve
from dpal.randomness import IdColumn, Places, Randomness
from dpal.selection.grid import Grid, Scores, on_grid

Positions = NDArray[np.int64]
NOBODY: Positions = np.empty(0, dtype=np.int64)

MEAN_SCORE = "mean-score"
# What a selection may serve best: the mean score of what it takes, or its overlap with the true top.
AIMS = (MEAN_SCORE, "overlap")

# The two promises: what selections chose stays with the operator, or is part of what is released.
INSIDE, RELEASED = "inside", "released"
PROMISES = (INSIDE, RELEASED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionBudget:
    """What all selections of a campaign may spend together, and how many records each is to take out of how many."""

    epsilon: float
    query_sizes: tuple[int, ...]
    unlabelled: tuple[int, ...]
    accounting: str
    # The Rényi order that decides the campaign's ε.
    order: float
    aim: str = MEAN_SCORE

    @property
    def share(self) -> float:
        """An equal part of ε for each selection, as in the paper."""
        return self.epsilon / len(self.query_sizes)

    @property
    def sizes(self) -> list[dict[str, int]]:
        """The query size and the number of unlabelled records of each selection, as arguments of its class."""
        pairs = zip(self.query_sizes, self.unlabelled, strict=True)
        return [{"query_size": query_size, "unlabelled": unlabelled} for query_size, unlabelled in pairs]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chosen:
    """What a selection releases: the records to label and, for threshold sampling, its threshold and a surplus.

    The surplus is retired for good: neither labelled nor offered again.
    """

    to_label: NDArray[Any] = field(repr=False)
    retired: NDArray[Any] = field(repr=False)
    threshold: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(ABC):
    """One selection: how many records it takes out of how many, and the parameters of its kind as further fields.

    A kind defines `name`, `plan`, `released`, `lift` and `_choose`. Everything else follows from its fields.
    """

    name: ClassVar[str]
    is_private: ClassVar[bool] = True
    # Whether it needs a part of ε. Kinds that do not look at scores, or are not private, do not.
    spends_epsilon: ClassVar[bool] = True
    reads_scores: ClassVar[bool] = True
    # The promises it may serve.
    promises: ClassVar[tuple[str, ...]] = (RELEASED,)
    query_size: int
    unlabelled: int

    def __post_init__(self) -> None:
        types = get_type_hints(type(self))
        for parameter in fields(self):
            value = getattr(self, parameter.name)
            check = checks.count if types[parameter.name] is int else checks.non_negative
            object.__setattr__(self, parameter.name, check(parameter.name, value))
        self._require_sizes()
        self.released  # noqa: B018 (the mechanisms check the parameters)

    def _require_sizes(self) -> None:
        if not 1 <= self.query_size <= self.unlabelled:
            allowed = f"from 1 to the {self.unlabelled:,} unlabelled records"
            raise InvalidArgument("query_size of a selection", self.query_size, allowed)

    @classmethod
    @abstractmethod
    def plan(cls, budget: SelectionBudget) -> Sequence[Self]:
        """The selections of a campaign, with every parameter fixed."""

    @property
    @abstractmethod
    def released(self) -> Released:
        """What the selection reveals about one record, for the accountants."""

    @abstractmethod
    def lift(self) -> float:
        """How far the mean score of what is taken rises above the pool's, for uniform scores: 0 random, 1 the top."""

    @abstractmethod
    def _choose(self, grid: Grid, randomness: Randomness) -> Chosen:
        """The chosen positions, from scores on the grid; a threshold in steps of the grid."""

    def _choose_by_id(self, grid: Grid, ids: IdColumn | Places, randomness: Randomness) -> Chosen:
        """The same for kinds whose coins are tied to ids. Others draw them in the order of the records."""
        del ids
        return self._choose(grid, randomness)

    @property
    def resolution(self) -> int:
        """How many steps of the public grid scores are rounded to."""
        return MOST_GRID_STEPS

    def choose(
        self,
        scores: Scores,
        *,
        highest: float,
        clip: float | None = None,
        randomness: Randomness,
        ids: Sequence[Any] | NDArray[Any] | None = None,
    ) -> Chosen:
        """The ids of the chosen records. Without ids, a record's id is its position in the scores.

        `highest` is the largest score there can be. Where noise is scaled to the range of scores, they are clipped at
        `clip` instead, so that less noise is needed.
        """
        largest = self.largest_score(highest, clip)
        grid = self._on_grid(scores, largest)
        names = None if ids is None else _names(ids)
        if names is not None and len(names) != len(grid):
            raise InvalidArgument("the number of ids", len(names), f"{len(grid):,}, one for each score")
        if len(grid) == 0:
            raise InvalidArgument("the number of scores", 0, "at least 1: there is no unlabelled record to select")
        column = Places(len(grid)) if names is None else IdColumn.of(names)
        chosen = self._choose_by_id(grid, column, randomness)
        if chosen.threshold is not None:
            chosen = replace(chosen, threshold=chosen.threshold * largest / self.resolution)
        if names is None:
            return chosen
        return replace(chosen, to_label=names[chosen.to_label], retired=names[chosen.retired])

    def _on_grid(self, scores: Scores, largest: float) -> Grid:
        return on_grid(scores, highest=largest, steps=self.resolution)

    @property
    def expected_number(self) -> int:
        """How many records it is planned to ask for."""
        return self.query_size

    def largest_number(self, pool_size: int) -> int:
        """The most records that it may ask for."""
        del pool_size
        return self.query_size

    @property
    def smallest_pool(self) -> int:
        """The fewest records it can choose from; where there are fewer, blanks fill up."""
        return self.query_size

    def largest_score(self, highest: float, clip: float | None) -> float:
        """The score that fills the grid. Kinds whose noise is for the range of scores use the clip."""
        del clip
        return highest

    def costs(self, accounting: str, order: float) -> tuple[float, float, float]:
        """About what every record pays, and on top of it one that is taken and one that is passed over.

        Planners start from it; what is certified does not depend on it.
        """
        mechanisms = self.released.mechanisms()
        if accounting == "basic":
            cost = math.fsum(pure_epsilon(mechanism) for mechanism in mechanisms)
        else:
            cost = float(renyi_curve([(mechanism, 1) for mechanism in mechanisms], (order,))[0])
        return cost, 0.0, 0.0

    def require_planned_for(self, aim: str) -> None:
        """Refuse parameters that do not belong together. Most kinds have nothing to check here."""
        del aim

    def parameters(self) -> dict[str, float]:
        """The parameters of the kind, without the sizes."""
        names = (parameter.name for parameter in fields(self))
        return {name: getattr(self, name) for name in names if name not in _SIZES}

    @classmethod
    def kind_name(cls) -> str:
        """The name of the kind; for one that is not dpal's own, its import path."""
        return cls.name if cls.__module__.startswith("dpal.") else import_path(cls)

    def kind(self) -> str:
        return self.kind_name()

    def to_json(self) -> dict[str, object]:
        sizes = {name: getattr(self, name) for name in _SIZES}
        document: dict[str, object] = {
            "mechanism": self.kind(),
            "private": self.is_private,
            **sizes,
            **self.parameters(),
        }
        if ":" not in self.kind():
            return document
        # What it releases too, so that everyone can recompute ε without its code.
        released = {"choice": self.released.choice, "threshold": self.released.threshold}
        stated = {part: mechanism and mechanism.to_json() for part, mechanism in released.items()}
        return {**document, "released": stated}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """A selection of this kind from what `to_json` wrote; anything missing or unknown is refused."""
        given = dict(document)
        name, released = given.pop("mechanism", None), given.pop("released", None)
        private = given.pop("private", cls.is_private)
        if private is not cls.is_private:
            raise InvalidArgument(f"private of the selection {name}", private, str(cls.is_private).lower())
        wanted = [parameter.name for parameter in fields(cls)]
        if sorted(given) != sorted(wanted):
            raise InvalidArgument(f"the set of parameters of {name}", sorted(given), f"exactly {', '.join(wanted)}")
        selection = cls(**given)
        if released != selection.to_json().get("released"):
            raise InvalidArgument(f"released of the selection {name}", released, "what its code says it releases")
        return selection

    def _require_enough(self, available: int) -> None:
        if self.query_size > available:
            raise InvalidArgument("query_size", self.query_size, f"at most the {available:,} unlabelled records")


_SIZES = ("query_size", "unlabelled")


def require_promise(selection: Selection | type[Selection], promise: str) -> None:
    """Refuse a selection under a promise that its accounting does not serve."""
    serves = promise in selection.promises
    if promise == RELEASED and isinstance(selection, Selection):
        # A threshold without a choice accounts for the threshold alone.
        serves = serves and (selection.released.choice is not None or selection.released.threshold is None)
    if not serves:
        if promise == INSIDE:
            allowed = "cut or random with selections inside; with this one, use selections released"
        else:
            allowed = "one that releases its choice (such as threshold), or use selections inside"
        raise InvalidArgument("selection", selection.name, allowed)


def require_share(kind: str, budget: SelectionBudget) -> float:
    """Each selection's share of ε, for kinds that cannot do without."""
    if budget.epsilon <= 0:
        allowed = f"above 0 for the selection {kind!r}, or use the selection 'random'"
        raise InvalidArgument("selection_epsilon", budget.epsilon, allowed)
    return budget.share


def top(values: NDArray[np.integer], count: int, randomness: Randomness) -> Positions:
    """The positions of the largest values, ties broken at random, in rising order."""
    if count == 0:
        return NOBODY
    last = np.partition(values, len(values) - count)[len(values) - count]
    above, ties = np.flatnonzero(values > last), np.flatnonzero(values == last)
    return np.sort(np.concatenate([above, ties[randomness.subset(len(ties), count - len(above))]]))


def _names(ids: object) -> NDArray[Any]:
    """Ids as an array that keeps each as it is: numpy would turn large integers into floats, and mixed ones to text."""
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
