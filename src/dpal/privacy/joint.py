"""One ε for training and selection together, under the accountings by name."""

import math

import numpy as np

from dpal.errors import InvalidArgument
from dpal.privacy import checks
from dpal.privacy.campaign_curve import campaign_curve
from dpal.privacy.campaign_history import GroupedHistory, pure_epsilon
from dpal.privacy.campaign_profile import CampaignProfile
from dpal.privacy.pld import PldAccountant
from dpal.privacy.renyi import RdpAccountant, delta_from_curve, epsilon_from_curve

# basic: pure-DP selections add their ε (the paper's). renyi: a selection charges everyone its whole curve,
# or its loss distribution with PLD. branch: a record pays for the branch it is on; the tight one.
ACCOUNTINGS = ("basic", "renyi", "branch")


def campaign_epsilon(
    campaign: GroupedHistory, *, delta: float, accounting: str, accountant: RdpAccountant | PldAccountant
) -> float:
    """The ε that holds at δ for every record, whichever selection takes it, or none."""
    delta = checks.open_probability("delta", delta)
    if _checked(accounting) == "basic":
        spent = _pure_spending(campaign)
        trained = [accountant.epsilon(history, delta) for history in campaign.training]
        return max(*(before + own for before, own in zip(spent, trained, strict=True)), spent[-1])
    follow = accounting == "branch"
    if isinstance(accountant, PldAccountant):
        spent = CampaignProfile.of(campaign, accountant, follow_branches=follow).epsilon(delta)
        if math.isfinite(spent):
            return spent
        # A δ below the arithmetic of the grid has no answer there; the Rényi bound holds for every δ.
        accountant = RdpAccountant()
    curve = campaign_curve(campaign, accountant.orders, follow_branches=follow)
    return epsilon_from_curve(curve, np.asarray(accountant.orders), delta) if curve.any() else 0.0


def campaign_delta(
    campaign: GroupedHistory, *, epsilon: float, accounting: str, accountant: RdpAccountant | PldAccountant
) -> float:
    """The δ that holds at ε for every record."""
    epsilon = checks.non_negative("epsilon", epsilon)
    if _checked(accounting) == "basic":
        spent = _pure_spending(campaign)
        if spent[-1] > epsilon:
            return 1.0
        pairs = zip(spent, campaign.training, strict=True)
        return max(accountant.delta(history, epsilon - before) for before, history in pairs)
    follow = accounting == "branch"
    if isinstance(accountant, PldAccountant):
        return CampaignProfile.of(campaign, accountant, follow_branches=follow).delta(epsilon)
    curve = campaign_curve(campaign, accountant.orders, follow_branches=follow)
    return delta_from_curve(curve, np.asarray(accountant.orders), epsilon) if curve.any() else 0.0


def _checked(accounting: str) -> str:
    if accounting not in ACCOUNTINGS:
        raise InvalidArgument("accounting", accounting, f"one of {', '.join(ACCOUNTINGS)}")
    return accounting


def _pure_spending(campaign: GroupedHistory) -> list[float]:
    """What the selections have cost each group before its training; the last entry is the never selected's."""
    spent = [0.0]
    for selection in campaign.selections:
        spent.append(spent[-1] + sum(pure_epsilon(mechanism) for mechanism in selection.mechanisms()))
    return spent
