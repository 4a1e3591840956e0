"""A campaign as one record may live through it: selections, and training with the group that takes it.

Every record of the pool may be part of a private mean first. Group 0 is labelled from the start. Selection j (0, 1, …)
meets every record not yet taken; a record it takes trains from then on with group j + 1. A record never taken pays for
the mean and the selections alone.
"""

from dataclasses import dataclass

from dpal.errors import InvalidArgument
from dpal.privacy.history import History, canonical
from dpal.privacy.losses import loss_range
from dpal.privacy.mechanisms import (
    BernoulliSelection,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    Mechanism,
    PureDP,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """What one selection releases about each record it meets: the choice, and first perhaps a threshold.

    No choice means that the selection does not look at the records (it is random), or that it releases a threshold
    alone: who is above it stays inside, and depends on the record itself and on what was released.
    """

    choice: Mechanism | None
    threshold: Mechanism | None = None

    def mechanisms(self) -> tuple[Mechanism, ...]:
        return tuple(mechanism for mechanism in (self.threshold, self.choice) if mechanism is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignHistory:
    """The training history of every group, oldest first, and the selections between them."""

    training: tuple[History, ...]
    selections: tuple[Released, ...] = ()
    # What every record of the pool is part of before anything else: a private mean.
    mean: Gaussian | None = None

    def __post_init__(self) -> None:
        if len(self.training) != len(self.selections) + 1:
            allowed = f"{len(self.selections) + 1}, one more than the selections"
            raise InvalidArgument("the number of groups", len(self.training), allowed)
        object.__setattr__(self, "training", tuple(canonical(history) for history in self.training))


def pure_epsilon(mechanism: Mechanism) -> float:
    """The ε of a mechanism that is ε-DP with δ = 0."""
    if isinstance(mechanism, Laplace | DiscreteLaplace | Exponential | PureDP):
        return mechanism.epsilon
    if isinstance(mechanism, BernoulliSelection):
        low, high = loss_range(mechanism)
        return max(-low, high)
    raise InvalidArgument("mechanism", mechanism, "a pure-DP one here (Laplace, exponential, Bernoulli, pure DP)")
