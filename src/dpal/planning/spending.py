"""What a campaign costs: ε of every group, of records never selected, and of the whole, after so many phases."""

import math
from dataclasses import dataclass
from functools import lru_cache

from dpal.planning.plan import Phase, Schedule
from dpal.planning.setting import Setting
from dpal.privacy.accountants import Accountant
from dpal.privacy.campaign_accounting import campaign_epsilon
from dpal.privacy.campaign_history import CampaignHistory, pure_epsilon
from dpal.privacy.history import CanonicalHistory, canonical
from dpal.privacy.mechanisms import Mechanism, PoissonSampledGaussian


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """ε at one time: of each group so far, of the records not selected so far, and of the whole campaign."""

    groups: tuple[float, ...]
    # Training and the mean, without selections.
    trained: tuple[float, ...]
    unselected: float
    campaign: float


@lru_cache(maxsize=20_000)
def _step(sampling_probability: float, noise_multiplier: float) -> PoissonSampledGaussian:
    return PoissonSampledGaussian(sampling_probability=sampling_probability, noise_multiplier=noise_multiplier)


def training_history(phases: tuple[Phase, ...], group: int) -> CanonicalHistory:
    """What training did to a record of the group."""
    return canonical(
        (_step(phase.sampling_probabilities[group], phase.noise_multiplier), phase.steps)
        for phase in phases
        if group < len(phase.sampling_probabilities)
    )


def steps_of(phase: Phase) -> list[Mechanism]:
    """One training step of the phase as each group sees it."""
    return [_step(rate, phase.noise_multiplier) for rate in phase.sampling_probabilities]


def spending(setting: Setting, schedule: Schedule, phases_done: int, accountant: Accountant) -> Spending:
    """What the campaign has cost after so many phases."""
    phases = schedule.phases[:phases_done]
    groups = len(phases[-1].sampling_probabilities)
    released = tuple(selection.released for selection in schedule.selections[: groups - 1])
    training = tuple(training_history(phases, group) for group in range(groups))
    paid = [selection.mechanisms() for selection in released]

    def mechanisms_before(group: int) -> list[Mechanism]:
        return [mechanism for mechanisms in paid[:group] for mechanism in mechanisms]

    delta = setting.target_delta
    # All groups at once is much faster than group by group.
    accountant.prepare(steps_of(phases[-1]))
    trained = tuple(accountant.epsilon((*setting.before, *history), delta) for history in training)
    if setting.accounting == "basic":
        costs = [math.fsum(pure_epsilon(kind) for kind in mechanisms_before(group)) for group in range(groups)]
        own = [alone + cost for alone, cost in zip(trained, costs, strict=True)]
        return Spending(groups=tuple(own), trained=trained, unselected=costs[-1], campaign=max(*own, costs[-1]))
    if setting.accounting == "renyi":
        histories = [
            (*setting.before, *history, *((kind, 1) for kind in mechanisms_before(group)))
            for group, history in enumerate(training)
        ]
        own = [accountant.epsilon(history, delta) for history in histories]
        paid_by_all = [*setting.before, *((kind, 1) for kind in mechanisms_before(groups - 1))]
        unselected = accountant.epsilon(paid_by_all, delta)
        campaign = CampaignHistory(training=training, selections=released, mean=setting.mean)
        joint = campaign_epsilon(campaign, delta=delta, accounting="renyi", accountant=accountant)
        return Spending(groups=tuple(own), trained=trained, unselected=unselected, campaign=joint)
    # Branch: which later group takes a record is an outcome, so all records outside the initial group share one ε.
    # Beyond what the promise asks, no group's training alone may cost more than that.
    outside = CampaignHistory(training=((), *training[1:]), selections=released, mean=setting.mean)
    joint = campaign_epsilon(outside, delta=delta, accounting="branch", accountant=accountant)
    own = (trained[0], *(max(joint, alone) for alone in trained[1:]))
    return Spending(groups=own, trained=trained, unselected=joint, campaign=max(joint, *own))
