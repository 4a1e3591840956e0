"""What a campaign costs: ε of every group, of records never selected, and of the whole, after so many phases."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from dpal.planning.plan import Phase, Schedule
from dpal.planning.setting import Setting
from dpal.privacy.accountants import Accountant
from dpal.privacy.campaign_accounting import campaign_epsilon
from dpal.privacy.campaign_history import CampaignHistory, Released, pure_epsilon
from dpal.privacy.history import CanonicalHistory, canonical
from dpal.privacy.mechanisms import Mechanism, PoissonSampledGaussian
from dpal.selection.selection import Selection


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHistory:
    """What was done to a record of one group."""

    training: CanonicalHistory
    # The private mean first; and, under Rényi accounting, the selections that led to the group too.
    with_mean: CanonicalHistory
    with_selections: CanonicalHistory
    # Under basic accounting: what those selections cost.
    selections_epsilon: float

    @classmethod
    def of(cls, setting: Setting, paid: Sequence[Mechanism]) -> "GroupHistory":
        """Before any training, after selections that released so much about its records."""
        training = canonical(())
        with_mean = canonical(setting.before) if setting.before else training
        charged = [(kind, 1) for kind in paid] if setting.accounting == "renyi" else []
        return cls(
            training=training,
            with_mean=with_mean,
            with_selections=canonical((*with_mean, *charged)) if charged else with_mean,
            selections_epsilon=math.fsum(map(pure_epsilon, paid)) if setting.accounting == "basic" else 0.0,
        )

    def then(self, step: Mechanism, times: int) -> "GroupHistory":
        training = self.training.then(step, times)
        with_mean = training if self.with_mean is self.training else self.with_mean.then(step, times)
        same = self.with_selections is self.with_mean
        with_selections = with_mean if same else self.with_selections.then(step, times)
        return replace(self, training=training, with_mean=with_mean, with_selections=with_selections)

    def by_itself(self) -> "GroupHistory":
        """The same as whole histories, which accountants account for at once: as they certify."""
        training = CanonicalHistory(self.training)
        with_mean = training if self.with_mean is self.training else CanonicalHistory(self.with_mean)
        same = self.with_selections is self.with_mean
        with_selections = with_mean if same else CanonicalHistory(self.with_selections)
        return replace(self, training=training, with_mean=with_mean, with_selections=with_selections)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A campaign after some of its phases. The next one costs little more than itself to account for."""

    setting: Setting
    # What each selection of the whole campaign releases.
    selections: tuple[Released, ...]
    groups: tuple[GroupHistory, ...] = ()
    # One step of the last phase as each group sees it.
    steps: tuple[Mechanism, ...] = ()

    @classmethod
    def of(cls, setting: Setting, phases: tuple[Phase, ...], selections: tuple[Selection, ...]) -> "Progress":
        """After these phases; the selections are those of the whole campaign."""
        progress = cls(setting=setting, selections=tuple(selection.released for selection in selections))
        for phase in phases:
            progress = progress.then(phase)
        return replace(progress, groups=tuple(group.by_itself() for group in progress.groups))

    def then(self, phase: Phase) -> "Progress":
        """After one phase more."""
        steps = tuple(_step(rate, phase.noise_multiplier) for rate in phase.sampling_probabilities)
        joined = self.with_groups(len(steps)).groups
        groups = tuple(group.then(step, phase.steps) for group, step in zip(joined, steps, strict=True))
        return replace(self, groups=groups, steps=steps)

    def with_groups(self, count: int) -> "Progress":
        """With so many groups in all, of which the new ones have not trained yet."""
        new = (GroupHistory.of(self.setting, self._paid_before(group)) for group in range(len(self.groups), count))
        return replace(self, groups=(*self.groups, *new))

    def _paid_before(self, group: int) -> list[Mechanism]:
        """What the selections that led to the group have released about its records."""
        return [kind for released in self.selections[:group] for kind in released.mechanisms()]

    def spending(self, accountant: Accountant) -> Spending:
        """What the campaign has cost so far."""
        setting, delta = self.setting, self.setting.target_delta
        # All groups at once is much faster than group by group.
        accountant.prepare(self.steps)
        trained = tuple(accountant.epsilon(group.with_mean, delta) for group in self.groups)
        training = tuple(group.training for group in self.groups)
        released = self.selections[: len(self.groups) - 1]
        if setting.accounting == "basic":
            own = [alone + group.selections_epsilon for alone, group in zip(trained, self.groups, strict=True)]
            unselected = self.groups[-1].selections_epsilon
            return Spending(groups=tuple(own), trained=trained, unselected=unselected, campaign=max(*own, unselected))
        if setting.accounting == "renyi":
            own = [accountant.epsilon(group.with_selections, delta) for group in self.groups]
            paid_by_all = [*setting.before, *((kind, 1) for kind in self._paid_before(len(self.groups) - 1))]
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


def spending(setting: Setting, schedule: Schedule, phases_done: int, accountant: Accountant) -> Spending:
    """What the campaign has cost after so many phases."""
    return Progress.of(setting, schedule.phases[:phases_done], schedule.selections).spending(accountant)


def training_history(phases: tuple[Phase, ...], group: int) -> CanonicalHistory:
    """What training did to a record of the group."""
    return canonical(
        (_step(phase.sampling_probabilities[group], phase.noise_multiplier), phase.steps)
        for phase in phases
        if group < len(phase.sampling_probabilities)
    )
