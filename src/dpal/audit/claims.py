"""What is claimed, and therefore attacked: δ(ε) of a plan, of one of its selections, or of a single mechanism."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from dpal.errors import InvalidArgument
from dpal.planning.plan import Plan
from dpal.planning.spending import training_history
from dpal.privacy.accountants import PldAccountant
from dpal.privacy.campaign_accounting import campaign_delta, campaign_epsilon
from dpal.privacy.campaign_history import CampaignHistory, pure_epsilon
from dpal.privacy.mechanisms import Mechanism
from dpal.selection.selection import Selection

# Where a claim's curve is tried, as shares of its ε: noise that is too small shows first at small ε.
_SHARES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A promise: δ for every ε, and the pair that is stated."""

    epsilon: float
    delta: float
    curve: Callable[[float], float] = field(repr=False)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Where the curve is tried."""
        return tuple(share * self.epsilon for share in _SHARES)

    @classmethod
    def of_history(cls, history: CampaignHistory, *, epsilon: float, delta: float) -> "Claim":
        """What is certified for this history, by the accountant that certifies it (PLD, branches)."""
        accountant = PldAccountant()

        @cache
        def curve(asked: float) -> float:
            return campaign_delta(history, epsilon=asked, accounting="branch", accountant=accountant)

        return cls(epsilon=epsilon, delta=delta, curve=curve)


def claim_of_plan(plan: Plan) -> Claim:
    """The promise of a whole plan."""
    require_private(plan)
    setting = plan.setting
    return Claim.of_history(history_of(plan), epsilon=plan.epsilon, delta=setting.target_delta)


def history_of(plan: Plan) -> CampaignHistory:
    """What a plan does to one record (or unit)."""
    groups = len(plan.phases[-1].sampling_probabilities)
    return CampaignHistory(
        training=tuple(training_history(plan.phases, group) for group in range(groups)),
        selections=tuple(selection.released for selection in plan.selections),
        mean=plan.setting.mean,
    )


def claim_of_selection(selection: Selection, *, delta: float) -> Claim:
    """The promise of a selection alone: what it releases, and no training. At δ = 0 where it has an ε without δ."""
    history = CampaignHistory(training=((), ()), selections=(selection.released,))
    pure = [
        own for mechanism in selection.released.mechanisms() if (own := epsilon_without_delta(mechanism)) is not None
    ]
    if len(pure) == len(selection.released.mechanisms()):
        return Claim.of_history(history, epsilon=sum(pure), delta=0.0)
    epsilon = campaign_epsilon(history, delta=delta, accounting="branch", accountant=PldAccountant())
    return Claim.of_history(history, epsilon=epsilon, delta=delta)


def epsilon_without_delta(mechanism: Mechanism) -> float | None:
    """The ε of a mechanism that holds at δ = 0; None for Gaussian noise, which has none."""
    try:
        return pure_epsilon(mechanism)
    except InvalidArgument:
        return None


def require_private(plan: Plan) -> None:
    """Refuse a plan that promises nothing."""
    if not plan.selection_is_private:
        raise InvalidArgument(
            "the plan's selection", plan.setting.selection, "a private one: this plan promises nothing"
        )
