"""Certification: every ε of a schedule, recomputed from its numbers alone. The only way to a Plan."""

import math
from itertools import pairwise
from pathlib import Path

from dpal.errors import BudgetExceeded, InvalidArgument
from dpal.planning.documents import read_json, require_same
from dpal.planning.plan import Group, Plan, Proposal, Schedule, read_proposal
from dpal.planning.setting import Setting
from dpal.planning.spending import Progress, Spending, spending
from dpal.privacy.rounding import rounded_up
from dpal.selection.selection import require_promise


def certified(planner: str, proposal: Proposal, *, phase_by_phase: bool = True) -> Plan:
    """The proposal as a plan, if every record ends within the target; otherwise `BudgetExceeded`.

    Phase by phase, each one continues the account of those before it. That is far quicker where there are many.
    """
    setting, schedule = proposal.setting, proposal.schedule
    _check_shape(setting, schedule)
    by_phase = _spending_by_phase(setting, schedule, phase_by_phase=phase_by_phase)
    final = by_phase[-1]
    worst = max(*final.groups, final.unselected, final.campaign)
    if not worst <= setting.target_epsilon:
        raise BudgetExceeded(
            f"The plan spends ε = {rounded_up(worst, 6):.6f} at δ = {setting.target_delta:g}, more than its target of "
            f"{setting.target_epsilon:g}. Nothing was charged. Make the plan again, or use it as it was written."
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


def read_plan(text: str, *, import_code: bool = False) -> Plan:
    """A plan from its JSON text, certified again: everything it states must follow from its numbers.

    A selection that is not dpal's own is imported only where the caller allows it.
    """
    document = read_json("the plan", text)
    planner, proposal = read_proposal(document, import_code=import_code)
    plan = certified(planner, proposal)
    try:
        require_same("the plan", document, plan.to_json(), recomputed=True)
    except InvalidArgument:
        # The two accounts of earlier phases round differently, by about 1e-9, and either may have been stated.
        plan = certified(planner, proposal, phase_by_phase=False)
        require_same("the plan", document, plan.to_json(), recomputed=True)
    return plan


def load_plan(path: str | Path, *, import_code: bool = False) -> Plan:
    """A plan from a file, certified again."""
    try:
        return read_plan(Path(path).read_text(encoding="utf-8"), import_code=import_code)
    except UnicodeDecodeError as error:
        raise InvalidArgument("the plan's file", str(path), "UTF-8 text") from error


def _spending_by_phase(setting: Setting, schedule: Schedule, *, phase_by_phase: bool) -> list[Spending]:
    # ε after earlier phases is shown, not promised: a coarser grid, and so a slightly larger ε, will do.
    progress = Progress.of(setting, (), schedule.selections)
    by_phase: list[Spending] = []
    for done, phase in enumerate(schedule.phases[:-1], start=1):
        progress = progress.then(phase)
        if phase_by_phase:
            by_phase.append(progress.spending(setting.searcher))
        else:
            by_phase.append(spending(setting, schedule, done, setting.searcher))
    # What is promised is accounted for at once, by the certifier.
    return [*by_phase, spending(setting, schedule, len(schedule.phases), setting.certifier)]


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
        selection.require_planned_for(setting.selection_aim)
        require_promise(selection, setting.promise)
        if selection.kind() != setting.selection:
            raise InvalidArgument("the mechanism of a selection", selection.kind(), f"{setting.selection!r}")
    for phase in schedule.phases:
        expected = sum(rate * size for rate, size in zip(phase.sampling_probabilities, sizes, strict=False))
        if not math.isclose(expected, phase.expected_batch_size, rel_tol=1e-9):
            raise InvalidArgument("expected_batch_size", phase.expected_batch_size, f"{expected!r}, the rates' sum")
