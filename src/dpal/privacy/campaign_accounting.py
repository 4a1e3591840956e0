"""One ε for training and selection together, under the accountings by name."""

from dpal.errors import InvalidArgument
from dpal.privacy import checks
from dpal.privacy.accountants import Accountant
from dpal.privacy.campaign_history import CampaignHistory, pure_epsilon

# basic: pure-DP selections add their ε (the paper's). renyi: a selection charges everyone its whole curve,
# or its loss distribution with PLD. branch: a record pays for the branch it is on; the tight one.
ACCOUNTINGS = ("basic", "renyi", "branch")


def campaign_epsilon(campaign: CampaignHistory, *, delta: float, accounting: str, accountant: Accountant) -> float:
    """The ε that holds at δ for every record, whichever selection takes it, or none."""
    delta = checks.open_probability("delta", delta)
    if _checked(accounting) != "basic":
        return accountant.campaign_epsilon(campaign, delta, follow_branches=accounting == "branch")
    _require_no_mean(campaign)
    spent = _pure_spending(campaign)
    trained = [accountant.epsilon(history, delta) for history in campaign.training]
    return max(*(before + own for before, own in zip(spent, trained, strict=True)), spent[-1])


def campaign_delta(campaign: CampaignHistory, *, epsilon: float, accounting: str, accountant: Accountant) -> float:
    """The δ that holds at ε for every record."""
    epsilon = checks.non_negative("epsilon", epsilon)
    if _checked(accounting) != "basic":
        return accountant.campaign_delta(campaign, epsilon, follow_branches=accounting == "branch")
    _require_no_mean(campaign)
    spent = _pure_spending(campaign)
    if spent[-1] > epsilon:
        return 1.0
    pairs = zip(spent, campaign.training, strict=True)
    return max(accountant.delta(history, epsilon - before) for before, history in pairs)


def _checked(accounting: str) -> str:
    if accounting not in ACCOUNTINGS:
        raise InvalidArgument("accounting", accounting, f"one of {', '.join(ACCOUNTINGS)}")
    return accounting


def _require_no_mean(campaign: CampaignHistory) -> None:
    if campaign.mean is not None:
        raise InvalidArgument("accounting", "basic", "renyi or branch with a private mean: the paper's has none")


def _pure_spending(campaign: CampaignHistory) -> list[float]:
    """What the selections have cost each group before its training; the last entry is for records never selected."""
    spent = [0.0]
    for selection in campaign.selections:
        spent.append(spent[-1] + sum(pure_epsilon(mechanism) for mechanism in selection.mechanisms()))
    return spent
