"""Certification: every ε of a schedule, recomputed from its numbers alone. The only way to a Plan."""

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from dpal.errors import BudgetExceeded, InvalidArgument
from dpal.planning.plan import Group, Phase, Plan, Proposal, Schedule, read_proposal
from dpal.planning.selections import threshold_selection
from dpal.planning.setting import Setting
from dpal.privacy.campaign_history import GroupedHistory, pure_epsilon
from dpal.privacy.history import CanonicalHistory, canonical
from dpal.privacy.joint import campaign_epsilon
from dpal.privacy.mechanisms import Mechanism, PoissonSampledGaussian
from dpal.privacy.pld import PldAccountant
from dpal.privacy.renyi import RdpAccountant, renyi_curve
from dpal.privacy.rounding import rounded_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """ε at one time: of each group so far, of the records not selected so far, and of the whole campaign."""

    groups: tuple[float, ...]
    # Training by itself, without selections.
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


def prepare_curves(phase: Phase, orders: tuple[float, ...]) -> None:
    """Compute the curves of all groups' steps at once, which is much faster than group by group."""
    noise = phase.noise_multiplier
    rates = phase.sampling_probabilities
    renyi_curve([(_step(rate, noise), 1) for rate in rates], orders)


def spending(
    setting: Setting, schedule: Schedule, phases_done: int, accountant: RdpAccountant | PldAccountant
) -> Spending:
    """What the campaign has cost after so many phases."""
    phases = schedule.phases[:phases_done]
    groups = len(phases[-1].sampling_probabilities)
    released = tuple(selection.released() for selection in schedule.selections[: groups - 1])
    training = tuple(training_history(phases, group) for group in range(groups))
    paid = [selection.mechanisms() for selection in released]

    def mechanisms_before(group: int) -> list[Mechanism]:
        # Where the acquisition function reads training data, everyone pays for every selection.
        count = len(paid) if setting.acquisition_reads_training_data else group
        return [mechanism for mechanisms in paid[:count] for mechanism in mechanisms]

    delta = setting.target_delta
    if isinstance(accountant, RdpAccountant):
        prepare_curves(phases[-1], accountant.orders)
    trained = tuple(accountant.epsilon(history, delta) for history in training)
    if setting.accounting == "basic":
        costs = [math.fsum(pure_epsilon(kind) for kind in mechanisms_before(group)) for group in range(groups)]
        own = [alone + cost for alone, cost in zip(trained, costs, strict=True)]
        return Spending(groups=tuple(own), trained=trained, unselected=costs[-1], campaign=max(*own, costs[-1]))
    if setting.accounting == "renyi":
        histories = [
            (*history, *((kind, 1) for kind in mechanisms_before(group))) for group, history in enumerate(training)
        ]
        own = [accountant.epsilon(history, delta) for history in histories]
        unselected = accountant.epsilon([(kind, 1) for kind in mechanisms_before(groups - 1)], delta)
        campaign = GroupedHistory(training=training, selections=released)
        joint = campaign_epsilon(campaign, delta=delta, accounting="renyi", accountant=accountant)
        return Spending(groups=tuple(own), trained=trained, unselected=unselected, campaign=joint)
    # Branch: which later group takes a record is an outcome, so all records outside the initial group share one ε.
    # Beyond what the promise asks, no group's training by itself may cost more than that.
    outside = GroupedHistory(training=((), *training[1:]), selections=released)
    joint = campaign_epsilon(outside, delta=delta, accounting="branch", accountant=accountant)
    own = (trained[0], *(max(joint, alone) for alone in trained[1:]))
    return Spending(groups=own, trained=trained, unselected=joint, campaign=max(joint, *own))


def certified(planner: str, proposal: Proposal) -> Plan:
    """The proposal as a plan, if every record ends within the target; otherwise `BudgetExceeded`."""
    setting, schedule = proposal.setting, proposal.schedule
    _check_shape(setting, schedule)
    accountant = setting.certifier
    last = len(schedule.phases)
    # ε after earlier phases is shown, not promised: a coarser grid, and so a slightly larger ε, will do.
    by_phase = [
        spending(setting, schedule, done, accountant if done == last else setting.searcher)
        for done in range(1, last + 1)
    ]
    final = by_phase[-1]
    worst = max(*final.groups, final.unselected, final.campaign)
    if not worst <= setting.target_epsilon:
        raise BudgetExceeded(
            f"The plan spends ε = {rounded_up(worst, 6):.6f} at δ = {setting.target_delta:g}, more than its target of "
            f"{setting.target_epsilon:g}. Nothing was charged. Plan anew, or use the plan as it was written."
        )
    groups = tuple(
        Group(
            size=size,
            epsilon_by_phase=tuple(
                spent.groups[index] if index < len(spent.groups) else spent.unselected for spent in by_phase
            ),
        )
        for index, size in enumerate(_group_sizes(setting, schedule))
    )
    return Plan(
        setting=setting,
        planner=planner,
        phases=schedule.phases,
        selections=schedule.selections,
        groups=groups,
        never_selected_epsilon_by_phase=tuple(spent.unselected for spent in by_phase),
        epsilon=worst,
        remark=proposal.remark,
    )


def read_plan(text: str) -> Plan:
    """A plan from its JSON text, certified anew: everything it states must follow from its numbers."""
    try:
        document: object = json.loads(text, parse_constant=no_constant, object_pairs_hook=no_duplicates)
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument("the plan", text[:60], f"JSON ({error})") from error
    plan = certified(*read_proposal(document))
    require_same("the plan", document, plan.to_json(), recomputed=True)
    return plan


def load_plan(path: str | Path) -> Plan:
    """A plan from a file, certified anew."""
    try:
        return read_plan(Path(path).read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidArgument("the plan's file", str(path), "a text in UTF-8") from error


def no_constant(name: str) -> float:
    """For reading JSON: no NaN and no infinity."""
    raise InvalidArgument("a number in the document", name, "finite")


def no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """For reading JSON: no key twice, of which people might read the one and programs the other."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidArgument(
            "an object in the document", [key for key, _ in pairs], "without a key that appears twice"
        )
    return found


def require_same(place: str, stated: object, true: object, *, recomputed: bool = False) -> None:
    """Refuse a document that differs from what its own numbers give.

    Where they were recomputed, perhaps on another machine, ε may be stated higher by rounding, and never lower.
    """
    if isinstance(true, dict) and isinstance(stated, dict):
        if stated.keys() != true.keys():
            raise InvalidArgument(f"the set of fields of {place}", sorted(stated), f"exactly {', '.join(true)}")
        for key, value in true.items():
            require_same(f"{place}: {key}", stated[key], value, recomputed=recomputed)
    elif isinstance(true, list) and isinstance(stated, list):
        if len(stated) != len(true):
            raise InvalidArgument(f"the length of {place}", len(stated), str(len(true)))
        for index, (stated_item, true_item) in enumerate(zip(stated, true, strict=True)):
            require_same(f"{place}[{index}]", stated_item, true_item, recomputed=recomputed)
    elif not (_is_same(stated, true) or (recomputed and _is_epsilon(place) and _is_no_lower(stated, true))):
        raise InvalidArgument(place, stated, f"{true!r}, as the plan's numbers give")


def _is_same(stated: object, true: object) -> bool:
    if isinstance(stated, bool) or isinstance(true, bool):
        return stated is true
    if isinstance(stated, int | float) and isinstance(true, int | float):
        return stated == true
    return type(stated) is type(true) and stated == true


def _is_epsilon(place: str) -> bool:
    return place.endswith(": epsilon") or ": epsilon_by_phase[" in place


def _is_no_lower(stated: object, true: object) -> bool:
    """Machines differ in the last digits of an ε; more than that, it may only be too high."""
    if not isinstance(stated, int | float) or not isinstance(true, int | float):
        return False
    return true - 1e-9 <= stated <= true + max(1e-9, 1e-6 * abs(true))


def _group_sizes(setting: Setting, schedule: Schedule) -> tuple[int, ...]:
    # Without selections everything is labelled at once.
    return setting.group_sizes if schedule.selections or len(setting.group_sizes) == 1 else (setting.labelling_budget,)


def _check_shape(setting: Setting, schedule: Schedule) -> None:
    if not schedule.phases:
        raise InvalidArgument("phases", [], "at least one phase")
    sizes = _group_sizes(setting, schedule)
    counts = [len(phase.sampling_probabilities) for phase in schedule.phases]
    steps_of_one = all(later - earlier in (0, 1) for earlier, later in pairwise(counts))
    if counts[0] != 1 or counts[-1] != len(sizes) or not steps_of_one:
        raise InvalidArgument(
            "the numbers of groups by phase", counts, f"1 to {len(sizes)}, one more at most each time"
        )
    if len(schedule.selections) != len(sizes) - 1:
        raise InvalidArgument("the number of selections", len(schedule.selections), f"{len(sizes) - 1}")
    for selection, size, unlabelled in zip(
        schedule.selections, setting.query_sizes, setting.unlabelled_before_query, strict=False
    ):
        if (selection.query_size, selection.unlabelled) != (size, unlabelled):
            stated = (selection.query_size, selection.unlabelled)
            raise InvalidArgument("query_size and unlabelled of a selection", stated, f"{(size, unlabelled)}")
        if selection.mechanism == "threshold":
            choice_epsilon = selection.parameter("choice_epsilon")
            rebuilt = threshold_selection(size, unlabelled, choice_epsilon, setting.selection_aim)
            for name, value in rebuilt.parameters:
                if not math.isclose(selection.parameter(name), value, rel_tol=1e-9):
                    stated = selection.parameter(name)
                    raise InvalidArgument(f"{name} of a selection", stated, f"{value!r}, as its choice_epsilon gives")
        if selection.mechanism != setting.selection:
            raise InvalidArgument("the mechanism of a selection", selection.mechanism, f"{setting.selection!r}")
    for phase in schedule.phases:
        expected = sum(rate * size for rate, size in zip(phase.sampling_probabilities, sizes, strict=False))
        if not math.isclose(expected, phase.expected_batch_size, rel_tol=1e-9):
            raise InvalidArgument("expected_batch_size", phase.expected_batch_size, f"{expected!r}, the rates' sum")


def made_phase(steps: int, noise_multiplier: float, rates: tuple[float, ...], sizes: tuple[int, ...]) -> Phase:
    """A phase whose expected batch size is what its rates say."""
    expected = float(sum(rate * size for rate, size in zip(rates, sizes, strict=False)))
    return Phase(
        steps=steps, noise_multiplier=noise_multiplier, expected_batch_size=expected, sampling_probabilities=rates
    )
