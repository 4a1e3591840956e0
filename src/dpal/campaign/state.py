"""The state of a campaign: a pure fold over its facts. And the next step: a pure function of the state."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from dpal.campaign.facts import (
    NO_LABEL,
    Answer,
    Answered,
    ChargedSelection,
    ChargedTraining,
    Closed,
    Created,
    Evaluated,
    Fact,
    Finished,
    GivenUp,
    Produced,
    Resumed,
    Selected,
    Trained,
    Withdrawn,
)
from dpal.campaign.store import Recorded
from dpal.errors import DamagedCampaign
from dpal.planning.plan import Schedule

Charge: TypeAlias = ChargedSelection | ChargedTraining


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything that has happened, brought together."""

    created: Created
    last: int
    last_at: str
    last_hash: str
    charges: tuple[tuple[int, Charge], ...] = ()
    # Charged, and its release is not recorded yet.
    open_charge: tuple[int, Charge] | None = None
    # The fact that the open charge's key is sealed with: the charge, or a withdrawal that replaced the key.
    sealed_with: int | None = None
    # The model of the open charge, once it is made.
    produced: Produced | None = None
    selected: tuple[Selected, ...] = ()
    answers: dict[str, Answer] = field(default_factory=dict[str, Answer], repr=False)
    closed: frozenset[int] = frozenset()
    trained: tuple[Trained, ...] = ()
    # The numbers of phases whose charges stand and whose models are never used.
    given_up: tuple[int, ...] = ()
    # The hash of the configuration where it has changed since the creation.
    changed_settings: str | None = None
    evaluated: tuple[Evaluated, ...] = ()
    finished: bool = False
    resumed: int = 0
    corrections: int = 0
    withdrawn: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        return tuple(each.to_label for each in self.selected)

    @property
    def phases_ended(self) -> int:
        """How many phases are trained or given up; so, the number of the next one."""
        return len(self.trained) + len(self.given_up)

    @property
    def settings(self) -> str:
        """The hash that the configuration must have now."""
        return self.changed_settings or self.created.settings

    def missing(self, group: int) -> list[str]:
        """The ids of a group that nobody has answered."""
        return [name for name in self.groups[group] if name not in self.answers and name not in self.withdrawn]

    def trainable(self, group: int) -> list[str]:
        """The ids of a group with a label; skipped and withdrawn ones take no part."""
        labelled = (name for name in self.groups[group] if self.answers.get(name, NO_LABEL[0]) not in NO_LABEL)
        return [name for name in labelled if name not in self.withdrawn]

    def taken(self) -> set[str]:
        """Ids that no selection may offer again."""
        return {name for each in self.selected for name in (*each.to_label, *each.retired)}


def fold(recorded: Iterable[Recorded]) -> State:
    """The state after these facts. Facts that contradict each other are refused."""
    state: State | None = None
    for each in recorded:
        if state is None:
            if not isinstance(each.fact, Created):
                raise DamagedCampaign("The campaign's first fact is not its creation.")
            state = State(created=each.fact, last=each.number, last_at=each.at, last_hash=each.hash)
        else:
            state = after(state, each.number, each.at, each.hash, each.fact)
    if state is None:
        raise DamagedCampaign("The campaign's database holds no facts.")
    return state


def after(state: State, number: int, at: str, hashed: str, fact: Fact) -> State:
    """The state with one more fact; a fact that cannot stand here is refused."""
    return replace(_after(state, number, fact), last=number, last_at=at, last_hash=hashed)


WEIGHTS = "checkpoints/initial.safetensors"


def checkpoint_name(phase: int) -> str:
    """Where a phase's model lies in the campaign's folder."""
    return f"checkpoints/phase-{phase + 1}.safetensors"


def _is_answer(answer: Answer, created: Created) -> bool:
    if isinstance(answer, str):
        return answer in NO_LABEL
    if isinstance(answer, tuple):
        return created.multi_label and len(answer) == len(created.classes) and all(0 <= each <= 1 for each in answer)
    return not created.multi_label and 0 <= answer < len(created.classes)


def _after(state: State, number: int, fact: Fact) -> State:
    match fact:
        case ChargedSelection() | ChargedTraining():
            _require(state.open_charge is None and not state.finished, number, "a charge while another is open")
            expected = len(state.selected) if isinstance(fact, ChargedSelection) else state.phases_ended
            position = fact.group if isinstance(fact, ChargedSelection) else fact.phase
            _require(position == expected, number, "a charge out of order")
            charges = (*state.charges, (number, fact))
            return replace(state, charges=charges, open_charge=(number, fact), sealed_with=number)
        case Selected():
            _require(_is_open(state, fact.charge, ChargedSelection), number, "a selection without a charge")
            _require(fact.group == len(state.selected), number, "a selection out of order")
            everyone = [*fact.to_label, *fact.retired]
            is_new = len(set(everyone)) == len(everyone) and not state.taken() & set(everyone)
            _require(is_new, number, "a record selected twice")
            _require(not state.withdrawn & set(everyone), number, "a selection of a withdrawn record")
            return replace(state, selected=(*state.selected, fact), open_charge=None, sealed_with=None)
        case Produced():
            _require(_is_open(state, fact.charge, ChargedTraining), number, "a model without a charge")
            _require(fact.phase == state.phases_ended and state.produced is None, number, "a second model")
            return replace(state, produced=fact)
        case Trained():
            _require(_is_open(state, fact.charge, ChargedTraining), number, "a model without a charge")
            _require(fact.phase == state.phases_ended, number, "a phase out of order")
            _require(fact.file == checkpoint_name(fact.phase), number, "a model in another place")
            made = state.produced
            same = made is not None and (fact.sha256, fact.export_sha256) == (made.sha256, made.export_sha256)
            _require(same, number, "another model than the one that was made")
            return replace(state, trained=(*state.trained, fact), open_charge=None, sealed_with=None, produced=None)
        case GivenUp():
            _require(_is_open(state, fact.charge, ChargedTraining), number, "the giving up of a phase without a charge")
            _require(fact.phase == state.phases_ended, number, "the giving up of a phase out of order")
            _require(state.produced is None, number, "the giving up of a phase whose model was made")
            given_up = (*state.given_up, fact.phase)
            return replace(state, given_up=given_up, changed_settings=fact.settings, open_charge=None, sealed_with=None)
        case Answered():
            asked = {name for group in state.groups for name in group}
            _require(set(fact.answers) <= asked, number, "an answer that nobody asked for")
            valid = all(_is_answer(each, state.created) for each in fact.answers.values())
            _require(valid, number, "an answer outside the classes")
            corrections = sum(name in state.answers for name in fact.answers)
            return replace(
                state, answers=state.answers | dict(fact.answers), corrections=state.corrections + corrections
            )
        case Closed():
            _require(fact.group < len(state.selected) and not state.finished, number, "the end of a round that is none")
            return replace(state, closed=state.closed | {fact.group})
        case Evaluated():
            _require(fact.phase in [each.phase for each in state.trained[-1:]], number, "a measurement of no model")
            return replace(state, evaluated=(*state.evaluated, fact))
        case Finished():
            _require(state.open_charge is None and not state.finished, number, "an end out of order")
            return replace(state, finished=True)
        case Resumed():
            is_open = state.open_charge is not None and state.open_charge[0] == fact.charge
            _require(is_open, number, "the resumption of nothing")
            return replace(state, resumed=state.resumed + 1)
        case Withdrawn():
            is_new = bool(fact.ids) and not state.withdrawn & set(fact.ids)
            _require(is_new, number, "a second withdrawal of a record")
            # A step under way gets a new key with the withdrawal, unless its model is made already.
            sealed_with = state.sealed_with if state.open_charge is None or state.produced is not None else number
            return replace(state, withdrawn=state.withdrawn | set(fact.ids), sealed_with=sealed_with)
        case _:
            raise DamagedCampaign(f"Fact {number} ({fact.kind}) cannot stand here.")


def _is_open(state: State, charge: int, kind: type[Charge]) -> bool:
    return state.open_charge is not None and state.open_charge[0] == charge and isinstance(state.open_charge[1], kind)


def _require(condition: bool, number: int, what: str) -> None:
    if not condition:
        raise DamagedCampaign(f"Fact {number} is {what}. Facts are only ever added in order: somebody changed them.")


@dataclass(frozen=True, slots=True)
class Select:
    """Choose the records of a group; group 0 is the initial set."""

    group: int


@dataclass(frozen=True, slots=True)
class WaitForLabels:
    """Answers are missing for records of this group."""

    group: int


@dataclass(frozen=True, slots=True)
class Train:
    """Train a phase."""

    phase: int


@dataclass(frozen=True, slots=True)
class Finish:
    """Everything is done but to say so."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """The campaign is finished."""


Step: TypeAlias = Select | WaitForLabels | Train | Finish | Nothing


def next_step(state: State, schedule: Schedule) -> Step:
    """What is to be done next. A step that was charged comes first."""
    if state.open_charge is not None:
        charge = state.open_charge[1]
        return Select(charge.group) if isinstance(charge, ChargedSelection) else Train(charge.phase)
    if state.finished:
        return Nothing()
    phase = state.phases_ended
    if phase == len(schedule.phases):
        return Finish()
    groups = len(schedule.phases[phase].sampling_probabilities)
    for group in range(len(state.selected)):
        if group not in state.closed and state.missing(group):
            return WaitForLabels(group)
    return Select(len(state.selected)) if len(state.selected) < groups else Train(phase)
