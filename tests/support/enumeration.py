"""Every path through code that draws randomness, with its exact probability."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np

from dpal.randomness import Randomness


class Branching(Randomness):
    """Follows a given path of decisions, then always the first option, and remembers where it could have turned."""

    def __init__(self, path: tuple[int, ...], noise_reach: int) -> None:
        self.path = path
        self.taken: list[int] = []
        self.options: list[int] = []
        self.probability = 1.0
        self.noise_reach = noise_reach

    def bytes(self, count: int) -> bytes:
        raise AssertionError("the code under test draws raw bits, which cannot be enumerated")

    def decide(self, probabilities: list[float]) -> int:
        index = self.path[len(self.taken)] if len(self.taken) < len(self.path) else 0
        self.taken.append(index)
        self.options.append(len(probabilities))
        self.probability *= probabilities[index]
        return index

    def coins(self, probability: Fraction, count: int):
        return np.array([self.decide([float(probability), float(1 - probability)]) == 0 for _ in range(count)], bool)

    def integers(self, bound: int, count: int):
        return np.array([self.decide([1 / bound] * bound) for _ in range(count)], dtype=np.int64)

    def record_coins(self):
        return BranchingCoins(self)

    def subset(self, population: int, size: int):
        subsets = list(combinations(range(population), size))
        return np.array(subsets[self.decide([1 / len(subsets)] * len(subsets))], dtype=np.int64)

    def discrete_laplace(self, unit: Fraction, count: int):
        return self._noise([math.exp(-float(unit) * abs(x)) for x in self._support()], count)

    def discrete_gaussian(self, variance: int, count: int):
        return self._noise([math.exp(-(x**2) / (2 * variance)) for x in self._support()], count)

    def _support(self) -> range:
        return range(-self.noise_reach, self.noise_reach + 1)

    def _noise(self, weights: list[float], count: int):
        total = math.fsum(weights)
        probabilities = [weight / total for weight in weights]
        return np.array([self.decide(probabilities) - self.noise_reach for _ in range(count)], dtype=np.int64)

    def exponential_picks(self, penalties, unit: Fraction, count: int):
        left, picks = list(range(len(penalties))), []
        for _ in range(count):
            weights = [math.exp(-float(unit) * (int(penalties[i]) - int(min(penalties)))) for i in left]
            picks.append(left.pop(self.decide([weight / math.fsum(weights) for weight in weights])))
        return np.array(picks, dtype=np.int64)


class BranchingCoins:
    """The coins of records, each a decision of its own. Asked again about the same record, it says the same."""

    def __init__(self, source: Branching) -> None:
        self.source = source
        self.known: dict[object, int] = {}

    def _by_id(self, kind: str, ids, decide) -> np.ndarray:
        for name in ids.raw():
            if (kind, name) not in self.known:
                self.known[kind, name] = int(decide())
        return np.array([self.known[kind, name] for name in ids.raw()], dtype=np.int64)

    def integers(self, bound: int, ids):
        return self._by_id("integer", ids, lambda: self.source.integers(bound, 1)[0])

    def coins(self, probability: Fraction, ids):
        return self._by_id("coin", ids, lambda: self.source.coins(probability, 1)[0]).astype(bool)

    def order(self, ids):
        if "order" not in self.known:
            orders = list(permutations(range(len(ids))))
            self.known["order"] = self.source.decide([1 / len(orders)] * len(orders))
        ranks = list(permutations(range(len(ids))))[self.known["order"]]
        return np.array([[rank << 56, 0] for rank in ranks], dtype=np.uint64)

    def subset(self, ids, size: int):
        if "order" in self.known:
            # The order was drawn for everyone, and these are the first in it.
            return np.arange(size)
        return self.source.subset(len(ids), size)


def outcomes(run: Callable[[Randomness], Hashable], *, noise_reach: int = 0) -> dict[Hashable, float]:
    """The probability of everything that `run` may return."""
    found: dict[Hashable, float] = defaultdict(float)
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        path = waiting.pop()
        randomness = Branching(path, noise_reach)
        result = run(randomness)
        found[result] += randomness.probability
        for depth in range(len(path), len(randomness.taken)):
            waiting.extend((*randomness.taken[:depth], other) for other in range(1, randomness.options[depth]))
    assert abs(math.fsum(found.values()) - 1) < 1e-9
    return dict(found)
