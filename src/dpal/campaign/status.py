"""Where a campaign stands: what may be shown to anyone, and separately the numbers that may not."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpal.campaign.chance import in_words, stopped_after
from dpal.campaign.facts import Selected
from dpal.campaign.inbox import Inbox
from dpal.campaign.ledger import epsilon_spent
from dpal.campaign.state import Finish, Nothing, ReleaseMean, Select, State, Step, Train, WaitForLabels, next_step
from dpal.labels.answers import CANNOT_TELL, SKIPPED
from dpal.planning.plan import Plan
from dpal.planning.unit_words import plural
from dpal.selection.selection import INSIDE


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalStatus:
    """Numbers that depend on private records or on when people answered. The promise does not cover them."""

    # None where selections are released: then they are public.
    asked: int | None
    retired: int | None
    labelled: int
    waiting_for_labels: int
    skipped: int
    cannot_tell: int
    corrected: int
    withdrawn: int
    resumed: int
    last_change: str
    # Entries from the labelling page that are safe, and not taken in yet.
    in_inbox: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What is done, what is next, what was spent. All public under the plan except the part called internal."""

    folder: str
    stage: str
    next_step: str
    phases_done: int
    # Counted from 1. Their charges still count; their models are never used.
    phases_given_up: tuple[int, ...]
    phases: int
    # In units.
    pool_size: int
    # What the promise protects one of: a record, or a person with several records.
    unit: str
    # The promise: whether what selections chose stays inside or is released.
    selections: str
    # None where selections stay inside: then they are internal.
    asked: int | None
    retired: int | None
    # Of all charges so far, computed from them: the same number as in verify and the certificate.
    epsilon_spent: float
    epsilon_budget: float
    target_delta: float
    is_private: bool
    metrics: tuple[dict[str, float], ...]
    # Which public encoder the model's features come from, and what it was trained on; None without one.
    encoder: str | None
    # One sentence for each of the metrics: how good it is, against the most frequent class and the phase before.
    held_out_in_words: tuple[str, ...]
    # Counted from 1: phases with a model no better than chance, after which the campaign was told to go on.
    went_on_after: tuple[int, ...]
    # None where selections stay inside: when labels came depends on what was asked for.
    last_day: str | None
    internal: InternalStatus

    @property
    def is_waiting(self) -> bool:
        return self.stage == WAITING

    @property
    def is_stopped(self) -> bool:
        return self.stage == STOPPED

    def to_json(self) -> dict[str, object]:
        """Numbers that have their place in the other part, public or internal, are left out."""
        document = _without_moved(asdict(self))
        return document | {"internal": _without_moved(asdict(self.internal))}


WAITING = "waiting-for-labels"
FINISHED = "finished"
# The newest model is no better than chance, and nobody has said to go on.
STOPPED = "stopped-at-chance"
# Nothing is charged yet; a step can begin; a step is charged and was interrupted, or is running.
PLANNED, READY, INTERRUPTED = "planned", "ready", "interrupted"
STAGES = (PLANNED, READY, INTERRUPTED, WAITING, STOPPED, FINISHED)
# Numbers that are public or internal, by the promise.
MOVED = ("asked", "retired", "last_day")


def _without_moved(document: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in document.items() if value is not None or name not in MOVED}


def status_of(folder: Path, state: State, plan: Plan) -> Status:
    """The status that follows from the state."""
    step, stopped = next_step(state, plan.schedule), stopped_after(state, plan.schedule)
    inside, (asked, retired) = plan.setting.promise == INSIDE, _numbers(state)
    return Status(
        folder=str(folder),
        stage=_stage(step, state) if stopped is None else STOPPED,
        next_step=_words(step)
        if stopped is None
        else f"decide whether to go on: the model of phase {stopped + 1} is no better than chance",
        phases_done=len(state.trained),
        phases_given_up=tuple(phase + 1 for phase in state.given_up),
        phases=len(plan.phases),
        pool_size=state.created.pool_size,
        unit=plan.setting.unit,
        selections=plan.setting.promise,
        asked=None if inside else asked,
        retired=None if inside else retired,
        epsilon_spent=epsilon_spent(folder, state, plan),
        epsilon_budget=plan.setting.target_epsilon,
        target_delta=plan.setting.target_delta,
        is_private=state.created.seed is None and plan.selection_is_private,
        metrics=tuple({"phase": float(scores.phase + 1), **scores.metrics} for scores in state.evaluated),
        encoder=encoder_words(state.created.encoder),
        held_out_in_words=tuple(
            in_words(state.evaluated, place, state.created.classes) for place in range(len(state.evaluated))
        ),
        went_on_after=tuple(phase + 1 for phase in state.went_on),
        last_day=None if inside else state.last_at[:10],
        internal=_internal(step, state, inside=inside, in_inbox=len(Inbox(folder).after(state.inbox))),
    )


def encoder_words(recorded: Mapping[str, Any] | None) -> str | None:
    """What must stand next to every result of a model that was not trained on the pool alone."""
    if recorded is None:
        return None
    return f"The features come from a public encoder, {recorded['name']}, trained on {recorded['trained_on']}."


def _numbers(state: State) -> tuple[int, int]:
    """How many records or, where units are named, units were asked for and retired."""
    asked = sum(len(chosen) for chosen in state.asked)
    return asked, sum(len(selection.retired) for selection in state.selected)


def _internal(step: Step, state: State, *, inside: bool, in_inbox: int) -> InternalStatus:
    answers = [answer for name, answer in state.answers.items() if name not in state.withdrawn]
    without = {word: answers.count(word) for word in (SKIPPED, CANNOT_TELL)}
    asked, retired = _numbers(state)
    return InternalStatus(
        asked=asked if inside else None,
        retired=retired if inside else None,
        labelled=len(answers) - sum(without.values()),
        waiting_for_labels=len(state.missing(step.group)) if isinstance(step, WaitForLabels) else 0,
        skipped=without[SKIPPED],
        cannot_tell=without[CANNOT_TELL],
        corrected=state.corrections,
        withdrawn=len(state.withdrawn),
        resumed=state.resumed,
        last_change=state.last_at,
        in_inbox=in_inbox,
    )


def _stage(step: Step, state: State) -> str:
    match step:
        case Nothing():
            return FINISHED
        case WaitForLabels():
            return WAITING
        case _:
            return PLANNED if not state.charges else INTERRUPTED if state.open_charge else READY


def _words(step: Step) -> str:
    match step:
        case ReleaseMean():
            return "release a private mean of the pool's features"
        case Select(group):
            return "draw the initial set" if group == 0 else f"select the records of query {group}"
        case WaitForLabels(group):
            of = "the initial set" if group == 0 else f"query {group}"
            return f"wait for labels of {of}"
        case Train(phase):
            return f"train phase {phase + 1}"
        case Finish():
            return "finish"
        case Nothing():
            return "nothing: the campaign is finished"


def words_of_selection(fact: Selected, plan: Plan) -> str:
    """What is said when a selection is made. Where selections stay inside, without a number."""
    what = "the initial set" if fact.group == 0 else f"query {fact.group}"
    if plan.setting.promise == INSIDE:
        return f"{what} is selected; how many {plural(plan.setting.unit)} it asks for is internal (dpal status)"
    planned = plan.groups[fact.group].size
    fewer = f", of {planned:,} planned at most" if len(fact.chosen) < planned else ""
    return f"{len(fact.chosen):,} {plural(plan.setting.unit)} selected for {what}{fewer}"
