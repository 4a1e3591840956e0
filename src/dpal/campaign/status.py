"""Where a campaign stands, in numbers that may be shown."""

from dataclasses import asdict, dataclass
from pathlib import Path

from dpal.campaign.facts import CANNOT_TELL, SKIPPED, ChargedSelection
from dpal.campaign.state import Finish, Nothing, Select, State, Step, Train, WaitForLabels, next_step
from dpal.planning.plan import Plan, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What is done, what is next, what was spent."""

    folder: str
    stage: str
    next_step: str
    waiting_for_labels: int
    phases_done: int
    phases: int
    pool_size: int
    asked: int
    labelled: int
    skipped: int
    cannot_tell: int
    retired: int
    corrected: int
    withdrawn: int
    # At most: what the plan says for the end of the phase that is charged or comes next.
    epsilon_spent: float
    epsilon_budget: float
    target_delta: float
    is_private: bool
    resumed: int
    metrics: tuple[dict[str, float], ...]
    last_change: str

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def status_of(folder: Path, state: State, plan: Plan) -> Status:
    """The status that follows from the state."""
    step = next_step(state, Schedule(phases=plan.phases, selections=plan.selections))
    answers = [answer for name, answer in state.answers.items() if name not in state.withdrawn]
    asked = sum(len(group) for group in state.groups)
    without = {word: answers.count(word) for word in (SKIPPED, CANNOT_TELL)}
    return Status(
        folder=str(folder),
        stage=_stage(step, state),
        next_step=_words(step, state),
        waiting_for_labels=len(state.missing(step.group)) if isinstance(step, WaitForLabels) else 0,
        phases_done=len(state.trained),
        phases=len(plan.phases),
        pool_size=state.created.pool_size,
        asked=asked,
        labelled=len(answers) - sum(without.values()),
        skipped=without[SKIPPED],
        cannot_tell=without[CANNOT_TELL],
        retired=sum(len(each.retired) for each in state.selected),
        corrected=state.corrections,
        withdrawn=len(state.withdrawn),
        epsilon_spent=epsilon_charged(state, plan),
        epsilon_budget=plan.setting.target_epsilon,
        target_delta=plan.setting.target_delta,
        is_private=state.created.seed is None and plan.selection_is_private,
        resumed=state.resumed,
        metrics=tuple({"phase": float(each.phase + 1), **each.metrics} for each in state.evaluated),
        last_change=state.last_at,
    )


def _stage(step: Step, state: State) -> str:
    match step:
        case Nothing():
            return "finished"
        case WaitForLabels():
            return "waiting-for-labels"
        case _:
            return "planned" if not state.charges else "interrupted" if state.open_charge else "ready"


def _words(step: Step, state: State) -> str:
    match step:
        case Select(group):
            return "draw the initial set" if group == 0 else f"select the records of query {group}"
        case WaitForLabels(group):
            of = "the initial set" if group == 0 else f"query {group}"
            return f"wait for {len(state.missing(group)):,} labels of {of}"
        case Train(phase):
            return f"train phase {phase + 1}"
        case Finish():
            return "finish"
        case Nothing():
            return "nothing: the campaign is finished"


def epsilon_charged(state: State, plan: Plan) -> float:
    """What the charges so far cost at most, by the numbers that the plan states."""
    charged = [charge for _, charge in state.charges]
    phases = sum(not isinstance(charge, ChargedSelection) for charge in charged)
    # A selection that is charged after the last phase belongs to the next one.
    selections = sum(isinstance(charge, ChargedSelection) for charge in charged) - 1
    covered = len(plan.phases[phases - 1].sampling_probabilities) - 1 if phases else 0
    last = phases if selections > covered else phases - 1
    if last < 0:
        return 0.0
    last = min(last, len(plan.phases) - 1)
    if last == len(plan.phases) - 1 or plan.setting.accounting == "renyi":
        # Under renyi accounting the whole costs more than any one group, and plans state that for the end only.
        return plan.epsilon
    return max(*(group.epsilon_by_phase[last] for group in plan.groups), plan.never_selected_epsilon_by_phase[last])
