"""Private mechanisms as frozen values. They hold public parameters; the accountants interpret them.

Every mechanism is stated for one record under zero-out adjacency: one run sees the record, the other
sees a blank in its place (docs/maths/adjacency.md).
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from functools import cache
from typing import ClassVar, cast

from dpal.errors import InvalidArgument
from dpal.privacy import checks

# Scores on a public grid fit in 16 bits, a blank's 0 included.
MOST_GRID_STEPS = 2**16 - 1
# Discrete noise is handled outcome by outcome: a standard deviation of up to a million steps.
_LARGEST_VARIANCE = 10**12
_SMALLEST_LAPLACE_UNIT = 1e-9


@cache
def _field_names(kind: type["Mechanism"]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """Something that touches private data once. The history says how often."""

    name: ClassVar[str]

    def parameters(self) -> tuple[float, ...]:
        return tuple(getattr(self, field_name) for field_name in _field_names(type(self)))

    def to_json(self) -> dict[str, object]:
        return {"mechanism": self.name, **asdict(self)}

    def _store(self, **checked: float) -> None:
        for field_name, value in checked.items():
            object.__setattr__(self, field_name, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonSampledGaussian(Mechanism):
    """One DP-SGD step: the record takes part with a probability; the sum gets Gaussian noise.

    The noise's standard deviation is noise_multiplier times the largest norm of one contribution.
    """

    name: ClassVar[str] = "poisson_sampled_gaussian"
    sampling_probability: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        self._store(
            sampling_probability=checks.probability("sampling_probability", self.sampling_probability),
            noise_multiplier=checks.noise("noise_multiplier", self.noise_multiplier),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(Mechanism):
    """Gaussian noise on a value that the record moves by at most 1 / noise_multiplier deviations."""

    name: ClassVar[str] = "gaussian"
    noise_multiplier: float

    def __post_init__(self) -> None:
        self._store(noise_multiplier=checks.noise("noise_multiplier", self.noise_multiplier))


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(Mechanism):
    """Laplace noise on one number; epsilon is sensitivity / scale."""

    name: ClassVar[str] = "laplace"
    epsilon: float

    def __post_init__(self) -> None:
        self._store(epsilon=checks.positive("epsilon", self.epsilon))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(Mechanism):
    """The exponential mechanism, weights exp(epsilon · utility / (2 · sensitivity))."""

    name: ClassVar[str] = "exponential"
    epsilon: float

    def __post_init__(self) -> None:
        self._store(epsilon=checks.positive("epsilon", self.epsilon))


@dataclass(frozen=True, slots=True, kw_only=True)
class BernoulliSelection(Mechanism):
    """One released bit: the record is taken with probability_high or, as a blank is, with probability_low."""

    name: ClassVar[str] = "bernoulli_selection"
    probability_high: float
    probability_low: float

    def __post_init__(self) -> None:
        self._store(
            probability_high=checks.open_probability("probability_high", self.probability_high),
            probability_low=checks.open_probability("probability_low", self.probability_low),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace(Mechanism):
    """Two-sided geometric noise, P(x) ∝ exp(−|x| · epsilon / grid_steps), on a score of 0 to grid_steps whole steps.

    It is not covered by `Laplace`: the largest loss has a probability above one half.
    """

    name: ClassVar[str] = "discrete_laplace"
    epsilon: float
    grid_steps: int

    def __post_init__(self) -> None:
        self._store(epsilon=checks.positive("epsilon", self.epsilon), grid_steps=_grid_steps(self.grid_steps))
        if self.epsilon < self.grid_steps * _SMALLEST_LAPLACE_UNIT:
            allowed = f"at least {self.grid_steps * _SMALLEST_LAPLACE_UNIT:g} with {self.grid_steps:,} grid steps"
            raise InvalidArgument("epsilon", self.epsilon, allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian(Mechanism):
    """Discrete Gaussian noise, P(x) ∝ exp(−x² / 2 variance), on a score of 0 to grid_steps whole steps.

    With a participation below 1 each record, blank or not, is left out by a coin that everyone may see.
    """

    name: ClassVar[str] = "discrete_gaussian"
    noise_multiplier: float
    grid_steps: int
    participation: float = 1.0

    def __post_init__(self) -> None:
        allowed = "a number above 0 and up to 1"
        participation = checks.number("participation", self.participation, allowed)
        if not 0 < participation <= 1:
            raise InvalidArgument("participation", self.participation, allowed)
        self._store(
            noise_multiplier=checks.noise("noise_multiplier", self.noise_multiplier),
            grid_steps=_grid_steps(self.grid_steps),
            participation=participation,
        )
        if self.variance > _LARGEST_VARIANCE:
            allowed = f"at most {math.isqrt(_LARGEST_VARIANCE) / self.grid_steps:g} with {self.grid_steps:,} grid steps"
            raise InvalidArgument("noise_multiplier", self.noise_multiplier, allowed)

    @property
    def variance(self) -> int:
        """In steps squared. A whole number, so that sampler and accountant mean the same."""
        return math.ceil((Fraction(self.noise_multiplier) * self.grid_steps) ** 2)


def _grid_steps(value: object) -> int:
    steps = checks.count("grid_steps", value)
    if not 1 <= steps <= MOST_GRID_STEPS:
        raise InvalidArgument("grid_steps", value, f"a whole number from 1 to {MOST_GRID_STEPS:,}")
    return steps


@dataclass(frozen=True, slots=True, kw_only=True)
class PureDP(Mechanism):
    """Anything known only to be epsilon-DP."""

    name: ClassVar[str] = "pure_dp"
    epsilon: float

    def __post_init__(self) -> None:
        self._store(epsilon=checks.positive("epsilon", self.epsilon))


MECHANISMS: dict[str, type[Mechanism]] = {
    kind.name: kind
    for kind in (
        PoissonSampledGaussian,
        Gaussian,
        Laplace,
        Exponential,
        BernoulliSelection,
        DiscreteLaplace,
        DiscreteGaussian,
        PureDP,
    )
}


def mechanism_from_json(document: object) -> Mechanism:
    """The mechanism that `to_json` wrote; anything else is refused, unknown fields included."""
    if not isinstance(document, Mapping):
        raise InvalidArgument("mechanism", document, "an object with a field 'mechanism'")
    given = dict(cast("Mapping[str, object]", document))
    name = given.pop("mechanism", None)
    kind = MECHANISMS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidArgument("mechanism", name, f"one of {', '.join(MECHANISMS)}")
    expected = _field_names(kind)
    if sorted(given) != sorted(expected):
        raise InvalidArgument(f"the set of fields of {name}", sorted(given), f"exactly {', '.join(expected)}")
    return kind(**given)
