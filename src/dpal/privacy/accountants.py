"""Accountants turn what was done to a record, or a whole campaign, into a promise. All answers are upper bounds."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpal.errors import InvalidArgument
from dpal.privacy import checks
from dpal.privacy.campaign_curve import campaign_curve
from dpal.privacy.campaign_history import CampaignHistory
from dpal.privacy.campaign_profile import CampaignProfile
from dpal.privacy.history import History, canonical
from dpal.privacy.losses import Direction
from dpal.privacy.mechanisms import Mechanism
from dpal.privacy.pld import DEFAULT_INTERVAL, PrivacyProfile, privacy_profile
from dpal.privacy.renyi import DEFAULT_ORDERS, delta_from_curve, epsilon_from_curve, renyi_curve


class Accountant(ABC):
    """ε and δ of a history, and of a campaign in which a record may be selected or passed over."""

    @abstractmethod
    def epsilon(self, history: History, delta: float) -> float:
        """The ε that holds at δ for a record with this history."""

    @abstractmethod
    def delta(self, history: History, epsilon: float) -> float:
        """The δ that holds at ε for a record with this history."""

    @abstractmethod
    def campaign_epsilon(self, campaign: CampaignHistory, delta: float, *, follow_branches: bool) -> float:
        """The ε that holds at δ for every record, whichever selection takes it, or none."""

    @abstractmethod
    def campaign_delta(self, campaign: CampaignHistory, epsilon: float, *, follow_branches: bool) -> float:
        """The δ that holds at ε for every record."""

    def prepare(self, mechanisms: Sequence[Mechanism]) -> None:
        """Mechanisms that will be asked about one by one; computing them together may be faster."""
        del mechanisms

    def for_searches(self, target_epsilon: float) -> "Accountant":
        """An accountant for searches around a target: perhaps faster, and never below this one."""
        del target_epsilon
        return self

    def at_orders(self, orders: Sequence[float]) -> "Accountant":
        """The same on these Rényi orders only, where it has orders: faster, and never below this one."""
        del orders
        return self

    def hints(self) -> "tuple[tuple[Accountant, float], ...]":
        """Faster accountants that say where a calibration may start, each with a stride for what follows it."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RdpAccountant(Accountant):
    """Rényi divergences: fast, and comparable with the paper and with Opacus."""

    orders: tuple[float, ...] = DEFAULT_ORDERS

    def epsilon(self, history: History, delta: float) -> float:
        delta = checks.open_probability("delta", delta)
        curve = renyi_curve(history, self.orders)
        return epsilon_from_curve(curve, np.asarray(self.orders), delta) if curve.any() else 0.0

    def delta(self, history: History, epsilon: float) -> float:
        epsilon = checks.non_negative("epsilon", epsilon)
        curve = renyi_curve(history, self.orders)
        return delta_from_curve(curve, np.asarray(self.orders), epsilon) if curve.any() else 0.0

    def campaign_epsilon(self, campaign: CampaignHistory, delta: float, *, follow_branches: bool) -> float:
        delta = checks.open_probability("delta", delta)
        curve = campaign_curve(campaign, self.orders, follow_branches=follow_branches)
        return epsilon_from_curve(curve, np.asarray(self.orders), delta) if curve.any() else 0.0

    def campaign_delta(self, campaign: CampaignHistory, epsilon: float, *, follow_branches: bool) -> float:
        epsilon = checks.non_negative("epsilon", epsilon)
        curve = campaign_curve(campaign, self.orders, follow_branches=follow_branches)
        return delta_from_curve(curve, np.asarray(self.orders), epsilon) if curve.any() else 0.0

    def prepare(self, mechanisms: Sequence[Mechanism]) -> None:
        renyi_curve([(mechanism, 1) for mechanism in mechanisms], self.orders)

    def at_orders(self, orders: Sequence[float]) -> "RdpAccountant":
        return replace(self, orders=tuple(orders))


@dataclass(frozen=True, slots=True, kw_only=True)
class PldAccountant(Accountant):
    """Privacy-loss distributions: the tight bound, and the default."""

    interval: float = DEFAULT_INTERVAL

    def __post_init__(self) -> None:
        object.__setattr__(self, "interval", checks.positive("interval", self.interval))

    def profile(self, history: History, direction: Direction) -> PrivacyProfile:
        """δ(ε) of the history in one direction."""
        return privacy_profile(history, direction, self.interval)

    def epsilon(self, history: History, delta: float) -> float:
        delta = checks.open_probability("delta", delta)
        entries = canonical(history)
        spent = max(self.profile(entries, direction).epsilon(delta) for direction in Direction)
        # A δ below the arithmetic of the grid has no answer there; the Rényi bound holds for every δ.
        return spent if math.isfinite(spent) else RdpAccountant().epsilon(entries, delta)

    def delta(self, history: History, epsilon: float) -> float:
        epsilon = checks.non_negative("epsilon", epsilon)
        entries = canonical(history)
        return max(float(self.profile(entries, direction).delta(epsilon)[0]) for direction in Direction)

    def campaign_epsilon(self, campaign: CampaignHistory, delta: float, *, follow_branches: bool) -> float:
        spent = CampaignProfile.of(campaign, self.interval, follow_branches=follow_branches).epsilon(delta)
        if math.isfinite(spent):
            return spent
        return RdpAccountant().campaign_epsilon(campaign, delta, follow_branches=follow_branches)

    def campaign_delta(self, campaign: CampaignHistory, epsilon: float, *, follow_branches: bool) -> float:
        epsilon = checks.non_negative("epsilon", epsilon)
        return CampaignProfile.of(campaign, self.interval, follow_branches=follow_branches).delta(epsilon)

    def for_searches(self, target_epsilon: float) -> "PldAccountant":
        # A grid as coarse as the target allows.
        doublings = min(max(math.floor(math.log2(target_epsilon)), 0), 5)
        return PldAccountant(interval=2**doublings * self.interval)

    def hints(self) -> tuple[tuple[Accountant, float], ...]:
        return ((RdpAccountant(), 0.05), (PldAccountant(interval=16 * self.interval), 0.001))


ACCOUNTANTS: dict[str, Accountant] = {"pld": PldAccountant(), "rdp": RdpAccountant()}
DEFAULT_ACCOUNTANT = "pld"


def accountant_named(name: str) -> Accountant:
    """The accountant of that name, in its default setting. Only dpal's own: a promise rests on it."""
    if not isinstance(name, str) or name not in ACCOUNTANTS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("accountant", name, f"one of {', '.join(ACCOUNTANTS)}")
    return ACCOUNTANTS[name]
