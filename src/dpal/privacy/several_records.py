"""What a whole campaign costs someone with several records, when every record is protected by itself.

Two bounds, each always valid, of which the smaller counts (docs/maths/group-privacy.md): "generic" applies the
campaign's certified curve once for each record; "direct" accounts for all the records together, step by step.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from dpal.errors import InvalidArgument, NumericalFailure
from dpal.privacy import checks
from dpal.privacy.accountants import Accountant, PldAccountant
from dpal.privacy.campaign_accounting import campaign_delta, campaign_epsilon
from dpal.privacy.campaign_history import CampaignHistory, Released
from dpal.privacy.campaign_profile import CampaignProfile
from dpal.privacy.group_privacy import group_delta
from dpal.privacy.history import CanonicalHistory, canonical
from dpal.privacy.losses import Direction
from dpal.privacy.mechanisms import (
    BernoulliSelection,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    Mechanism,
    PureDP,
)
from dpal.privacy.mixture_of_gaussians import checked_records, step_of_several
from dpal.privacy.pld import DEFAULT_INTERVAL, PrivacyProfile, privacy_profile
from dpal.privacy.search import safe_crossing

Curve: TypeAlias = Callable[[float], float]
GENERIC, DIRECT = "generic", "direct"

# The numbers of records in the initial set are covered in at most this many ranges.
_MOST_RANGES = 6
# What floating point may shift the loss of one step by: some hundred roundings of numbers around 1.
_SHIFT = 1e-13
# A loss distribution starts on a grid this much coarser than one record's, and is made finer until ε is so many points.
_COARSE, _GRID_POINTS = 64, 100_000
# A group whose selections are worth this much has no promise; beyond it exp would overflow.
_LARGEST_SELECTION_EPSILON = 500.0
# The generic search: from the ε of one record outwards.
_STRIDE, _LARGEST_EPSILON = 1.02, 500.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPhase:
    """A phase as the groups see it: those that exist have a sampling probability, oldest first."""

    sampling_probabilities: tuple[float, ...]
    noise_multiplier: float
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasedCampaign:
    """A campaign phase by phase: its steps, the selections, and perhaps a private mean before them."""

    phases: tuple[TrainingPhase, ...]
    selections: tuple[Released, ...] = ()
    mean: Gaussian | None = None
    # Whether every selection is known to treat each record by itself, given what was released. If not, there is no
    # direct account.
    records_are_separate: bool = True

    def __post_init__(self) -> None:
        groups = len(self.selections) + 1
        for phase in self.phases:
            if not 1 <= len(phase.sampling_probabilities) <= groups:
                allowed = f"1 to {groups}, at most one more than the selections"
                raise InvalidArgument("the number of sampling probabilities", phase.sampling_probabilities, allowed)

    def as_one_record(self) -> CampaignHistory:
        """The same campaign as one record may live through it."""
        groups = range(len(self.selections) + 1)
        return CampaignHistory(
            training=tuple(
                canonical(
                    (step, phase.steps)
                    for phase in self.phases
                    if group < len(phase.sampling_probabilities)
                    and (step := step_of_several([(phase.sampling_probabilities[group], 1)], phase.noise_multiplier))
                )
                for group in groups
            ),
            selections=self.selections,
            mean=self.mean,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralRecordsEpsilon:
    """The ε of someone with so many records, and the bound that gives it; infinity if neither gives any."""

    records: int
    epsilon: float
    bound: str


def several_records_epsilon(
    campaign: PhasedCampaign, *, records: int, delta: float, accounting: str, accountant: Accountant
) -> SeveralRecordsEpsilon:
    """The ε that holds at δ for anyone with at most so many records. Its δ is the same δ, not one for each record."""
    records = checked_records(records)
    delta = checks.open_probability("delta", delta)
    one_record = campaign.as_one_record()
    least = campaign_epsilon(one_record, delta=delta, accounting=accounting, accountant=accountant)
    if records == 1:
        return SeveralRecordsEpsilon(records=1, epsilon=least, bound=GENERIC)
    generic = _generic_epsilon(_certified_curve(one_record, accounting, accountant), least, delta, records)
    direct = _direct_epsilon(direct_histories(campaign, records), delta, records)
    if direct < generic:
        return SeveralRecordsEpsilon(records=records, epsilon=direct, bound=DIRECT)
    return SeveralRecordsEpsilon(records=records, epsilon=generic, bound=GENERIC)


def several_records_delta(
    campaign: PhasedCampaign, *, records: int, epsilon: float, accounting: str, accountant: Accountant
) -> float:
    """The δ that holds at ε for anyone with at most so many records: the smaller of both bounds."""
    records = checked_records(records)
    epsilon = checks.positive("epsilon", epsilon)
    curve = _certified_curve(campaign.as_one_record(), accounting, accountant)
    return min(_generic_delta(curve, epsilon, records), direct_delta(campaign, records=records, epsilon=epsilon))


def direct_delta(campaign: PhasedCampaign, *, records: int, epsilon: float) -> float:
    """The δ at ε by the direct account alone; 1 where there is none."""
    epsilon = checks.number("epsilon", epsilon, "a number")
    histories = direct_histories(campaign, checked_records(records))
    if histories is None:
        return 1.0
    interval = _interval(records, epsilon)
    profiles = [profile for history in histories for profile in _direct_profiles(history, interval)]
    return _largest_delta(profiles, epsilon)


def _certified_curve(campaign: CampaignHistory, accounting: str, accountant: Accountant) -> Curve:
    """δ(ε) of one record, by the campaign's own accountant."""
    if isinstance(accountant, PldAccountant):
        # One profile for all ε. Basic accounting is never below the additive one (docs/maths/branches.md).
        follow_branches = accounting == "branch"
        return CampaignProfile.of(campaign, accountant.interval, follow_branches=follow_branches).delta
    return lambda epsilon: campaign_delta(campaign, epsilon=epsilon, accounting=accounting, accountant=accountant)


def _generic_delta(curve: Curve, epsilon: float, records: int) -> float:
    return group_delta(epsilon / records, curve(epsilon / records), records)


def _generic_epsilon(curve: Curve, least: float, delta: float, records: int) -> float:
    """An ε at which the generic bound is at most δ, as small as the search finds it; infinity if it finds none.

    The bound may rise again where δ no longer falls, so the first point that is safe is taken, from small ε on. For one
    record δ must be met at ε / records already, so no smaller ε is possible.
    """

    @cache
    def gap(share: float) -> float:
        bound = group_delta(share, curve(share), records)
        return math.log(bound) - math.log(delta) if bound > 0 else -math.inf

    unsafe = share = max(least, 1e-6)
    while not gap(share) <= 0:
        unsafe, share = share, share * _STRIDE
        if share > _LARGEST_EPSILON:
            return math.inf
    if share != unsafe:
        share = safe_crossing(gap, safe=share, unsafe=unsafe, gap_tolerance=1e-9)
    return _evaluated(lambda epsilon: _generic_delta(curve, epsilon, records), share * records, delta)


def _evaluated(bound: Curve, epsilon: float, delta: float) -> float:
    """The ε, or one just above it, that was itself evaluated and found to keep δ."""
    for exponent in range(-16, -5):
        if bound(epsilon) <= delta:
            return epsilon
        epsilon = math.nextafter(epsilon * (1 + 10.0**exponent), math.inf)
    raise NumericalFailure("An ε for several records did not hold when it was evaluated again. Nothing was charged.")


def direct_histories(campaign: PhasedCampaign, records: int) -> tuple[CanonicalHistory, ...] | None:
    """What happens to the records together: one history for each range of how many are in the initial set.

    The initial set is fixed before anything is released, so the worst of these histories counts. All others may join
    any later group, at any selection, so they are charged every selection, and in each phase the largest rate of a
    later group. None if a selection is not known to treat each record by itself.
    """
    if not campaign.records_are_separate:
        return None
    histories: list[CanonicalHistory] = []
    for fewest, most in _ranges(records) if campaign.selections else ((records, records),):
        entries: list[tuple[Mechanism, int]] = []
        if campaign.mean is not None:
            entries.append((Gaussian(noise_multiplier=campaign.mean.noise_multiplier / records), 1))
        for phase in campaign.phases:
            initial, *later = phase.sampling_probabilities
            joined = max(later, default=0.0)
            rates = ((initial, fewest), (max(initial, joined), most - fewest), (joined, records - most))
            step = step_of_several(rates, phase.noise_multiplier)
            entries += [] if step is None else [(step, phase.steps)]
        if records > fewest:
            for selection in campaign.selections:
                for mechanism in selection.mechanisms():
                    together = _selection_of_several(mechanism, records - fewest)
                    if together is None:
                        return None
                    entries.append(together)
        histories.append(canonical(entries))
    return tuple(dict.fromkeys(histories))


def _ranges(records: int) -> list[tuple[int, int]]:
    """0 to records in consecutive ranges (fewest, most)."""
    count = min(records + 1, _MOST_RANGES)
    starts = [(records + 1) * place // count for place in range(count + 1)]
    return [(start, end - 1) for start, end in pairwise(starts)]


def _selection_of_several(mechanism: Mechanism, records: int) -> tuple[Mechanism, int] | None:
    """A selection's mechanism as so many records meet it together, and how often; None if there is no such account."""
    match mechanism:
        case BernoulliSelection() | DiscreteLaplace() | DiscreteGaussian():
            # One bit or noisy score for each record, independent given what was released before: a product of pairs.
            return mechanism, records
        case Exponential() if records * mechanism.epsilon <= _LARGEST_SELECTION_EPSILON:
            # Along a chain of neighbours the ranges of the losses add up.
            return Exponential(epsilon=records * mechanism.epsilon), 1
        case Laplace() | PureDP() if records * mechanism.epsilon <= _LARGEST_SELECTION_EPSILON:
            return PureDP(epsilon=records * mechanism.epsilon), 1
        case Gaussian():
            # arXiv:1905.02383 Thm. 2.14: shifts add up along the chain.
            return Gaussian(noise_multiplier=mechanism.noise_multiplier / records), 1
        case _:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _DirectProfile:
    """δ(ε) of one history in one direction, with its losses taken a little larger than they were computed."""

    profile: PrivacyProfile
    shift: float

    def delta(self, epsilon: float) -> float:
        return float(self.profile.delta(epsilon - self.shift)[0])

    def epsilon(self, delta: float) -> float:
        return self.profile.epsilon(delta) + self.shift


class _DirectAccount(NamedTuple):
    """What one history costs on a grid with this interval."""

    epsilon: float
    interval: float
    profiles: tuple[_DirectProfile, ...]


def _direct_profiles(history: CanonicalHistory, interval: float) -> tuple[_DirectProfile, ...]:
    """In both directions."""
    shift = _SHIFT * sum(times for _, times in history)
    return tuple(
        _DirectProfile(profile=privacy_profile(history, direction, interval), shift=shift) for direction in Direction
    )


def _largest_delta(profiles: Sequence[_DirectProfile], epsilon: float) -> float:
    return max(profile.delta(epsilon) for profile in profiles)


def _interval(records: int, epsilon: float) -> float:
    """A grid's interval for an ε of this size. Any interval is safe; a finer one only gives a smaller ε."""
    return max(records * DEFAULT_INTERVAL, epsilon / _GRID_POINTS)


def _direct_epsilon(histories: Sequence[CanonicalHistory] | None, delta: float, records: int) -> float:
    """The ε by the direct account; infinity if there is none.

    Every grid gives an ε that holds, and a finer one a smaller one. Only the history that costs most counts, so always
    that one is refined whose ε is the largest, until its grid fits its ε.
    """
    if histories is None:
        return math.inf

    def account(history: CanonicalHistory, interval: float) -> _DirectAccount:
        profiles = _direct_profiles(history, interval)
        return _DirectAccount(max(profile.epsilon(delta) for profile in profiles), interval, profiles)

    accounts = {history: account(history, _COARSE * records * DEFAULT_INTERVAL) for history in histories}
    while True:
        costliest = max(accounts, key=lambda history: accounts[history].epsilon)
        epsilon, interval, _ = accounts[costliest]
        wanted = _interval(records, epsilon if math.isfinite(epsilon) else 0.0)
        if interval <= 2 * wanted:
            break
        accounts[costliest] = account(costliest, max(wanted, interval / _COARSE))
    if math.isinf(epsilon):
        return epsilon
    profiles = [profile for each in accounts.values() for profile in each.profiles]
    return _evaluated(lambda at: _largest_delta(profiles, at), epsilon, delta)
