"""The highest noisy scores: each record's score gets its own noise; everything after that is post-processing."""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from dpal.errors import InvalidArgument
from dpal.privacy.campaign_history import Released
from dpal.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpal.randomness import Randomness
from dpal.selection.grid import Grid
from dpal.selection.selection import NOBODY, Chosen, Positions, Selection, SelectionBudget, require_share, top

Array = NDArray[np.float64]
# Noisy kinds round scores to this many steps: far finer than their noise.
GRID_STEPS = 1024
# The part of the pool that the sampled Gaussian looks at, as in the paper.
PARTICIPATION = 0.7
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyScores(Selection):
    """What the kinds of noise have in common."""

    def largest_score(self, highest: float, clip: float | None) -> float:
        return highest if clip is None else clip

    @abstractmethod
    def _noise(self, randomness: Randomness, count: int) -> NDArray[np.int64]:
        """Noise for so many scores, in steps of the grid."""

    def _candidates(self, available: int, randomness: Randomness) -> Positions:
        del randomness
        self._require_enough(available)
        return np.arange(available)

    def _choose(self, grid: Grid, randomness: Randomness) -> Chosen:
        candidates = self._candidates(len(grid), randomness)
        noisy = np.empty(len(candidates), dtype=np.int64)
        for start in range(0, len(candidates), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            noisy[chunk] = grid[candidates[chunk]] + self._noise(randomness, len(candidates[chunk]))
        highest = top(noisy, min(self.query_size, len(noisy)), randomness)
        return Chosen(to_label=candidates[highest], retired=NOBODY)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceSelection(NoisyScores):
    """Discrete Laplace noise: the paper's, with ε / T for each of T selections."""

    name: ClassVar[str] = "laplace"
    epsilon: float
    grid_steps: int

    @classmethod
    def plan(cls, budget: SelectionBudget) -> Sequence[Self]:
        share = require_share(cls.name, budget)
        return [cls(**sizes, epsilon=share, grid_steps=GRID_STEPS) for sizes in budget.sizes]

    @property
    def resolution(self) -> int:
        return self.grid_steps

    @property
    def released(self) -> Released:
        return Released(choice=DiscreteLaplace(epsilon=self.epsilon, grid_steps=self.grid_steps))

    def lift(self) -> float:
        return lift_of_noise(self.query_size / self.unlabelled, lambda x: _laplace_survival(x * self.epsilon))

    def _noise(self, randomness: Randomness, count: int) -> NDArray[np.int64]:
        return randomness.discrete_laplace(Fraction(self.epsilon) / self.grid_steps, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianSelection(NoisyScores):
    """Discrete Gaussian noise."""

    name: ClassVar[str] = "gaussian"
    noise_multiplier: float
    grid_steps: int

    @classmethod
    def plan(cls, budget: SelectionBudget) -> Sequence[Self]:
        noise = _noise_for_share(cls.name, budget, 1.0)
        return [cls(**sizes, noise_multiplier=noise, grid_steps=GRID_STEPS) for sizes in budget.sizes]

    @property
    def resolution(self) -> int:
        return self.grid_steps

    @property
    def mechanism(self) -> DiscreteGaussian:
        return DiscreteGaussian(noise_multiplier=self.noise_multiplier, grid_steps=self.grid_steps)

    @property
    def released(self) -> Released:
        return Released(choice=self.mechanism)

    def lift(self) -> float:
        return lift_of_noise(
            self.query_size / self.unlabelled, lambda x: scipy.special.ndtr(-x / self.noise_multiplier)
        )

    def _noise(self, randomness: Randomness, count: int) -> NDArray[np.int64]:
        return randomness.discrete_gaussian(self.mechanism.variance, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledGaussianSelection(GaussianSelection):
    """Discrete Gaussian noise on a random part of the pool, which is drawn by coins that everyone may see."""

    name: ClassVar[str] = "sampled-gaussian"
    participation: float

    @classmethod
    def plan(cls, budget: SelectionBudget) -> Sequence[Self]:
        noise = _noise_for_share(cls.name, budget, PARTICIPATION)
        return [
            cls(**sizes, noise_multiplier=noise, grid_steps=GRID_STEPS, participation=PARTICIPATION)
            for sizes in budget.sizes
        ]

    @property
    def mechanism(self) -> DiscreteGaussian:
        return DiscreteGaussian(
            noise_multiplier=self.noise_multiplier, grid_steps=self.grid_steps, participation=self.participation
        )

    def lift(self) -> float:
        fraction = min(self.query_size / self.unlabelled / self.participation, 1.0)
        return lift_of_noise(fraction, lambda x: scipy.special.ndtr(-x / self.noise_multiplier))

    def _candidates(self, available: int, randomness: Randomness) -> Positions:
        if self.participation == 1:
            self._require_enough(available)
            return np.arange(available)
        # The coins do not look at the scores. Fewer may be left than are wanted: then fewer are selected.
        return np.flatnonzero(randomness.coins(Fraction(self.participation), available))


def _noise_for_share(kind: str, budget: SelectionBudget, participation: float) -> float:
    """The noise whose curve, at the order that decides, is the same share that Laplace would get."""
    if budget.accounting == "basic":
        allowed = f"renyi or branch with the selection {kind}, which has no pure ε"
        raise InvalidArgument("accounting", "basic", allowed)
    order, share = budget.order, require_share(kind, budget)
    mixed = math.log1p(math.expm1(min((order - 1) * share, 600.0)) / participation) / (order - 1)
    return math.sqrt(order / (2 * mixed))


def _laplace_survival(x: Array) -> Array:
    return np.where(x > 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)


def lift_of_noise(fraction: float, survival: Callable[[Array], Array]) -> float:
    """The lift of taking this fraction with the highest noisy scores; `survival` is P(noise > x)."""
    scores = (np.arange(256) + 0.5) / 256
    low, high = -1e4, 1e4
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if survival(middle - scores).mean() > fraction else (low, middle)
    chances = survival(high - scores)
    return float(2 * (chances @ scores) / chances.sum() - 1)
