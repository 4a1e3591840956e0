"""The state of a campaign: a pure fold over its facts. And the next step: a pure function of the state."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from dpal.campaign.facts import (
    Answered,
    Arranged,
    ChargedMean,
    ChargedSelection,
    ChargedTraining,
    Closed,
    Created,
    Evaluated,
    Fact,
    Finished,
    GivenUp,
    MeanReleased,
    Produced,
    Resumed,
    Scored,
    Selected,
    Trained,
    WentOn,
    Withdrawn,
)
from dpal.campaign.layout import checkpoint_name
from dpal.campaign.store import Recorded
from dpal.errors import DamagedCampaign
from dpal.labels.answers import NO_LABEL, Answer, is_answer
from dpal.labels.people import Arrangement, Opinion
from dpal.planning.plan import Schedule

Charge: TypeAlias = ChargedMean | ChargedSelection | ChargedTraining


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything that has happened, in one value."""

    created: Created
    last: int
    last_at: str
    last_hash: str
    charges: tuple[tuple[int, Charge], ...] = ()
    # A charge whose release is not recorded yet.
    open_charge: tuple[int, Charge] | None = None
    # The fact that the open charge's key is sealed with: the charge, or a withdrawal that replaced the key.
    sealed_with: int | None = None
    # The scores of the open charge, where the pool is large, once it is scored.
    scored: Scored | None = None
    # The model of the open charge, once it is made.
    produced: Produced | None = None
    # The private mean of the pool's features, once it is released.
    mean: tuple[float, ...] | None = field(default=None, repr=False)
    selected: tuple[Selected, ...] = ()
    answers: dict[str, Answer] = field(default_factory=dict[str, Answer], repr=False)
    closed: frozenset[int] = frozenset()
    trained: tuple[Trained, ...] = ()
    # The numbers of phases whose charges stand and whose models are never used.
    given_up: tuple[int, ...] = ()
    # The hash of the configuration if it has changed since the creation.
    changed_settings: str | None = None
    evaluated: tuple[Evaluated, ...] = ()
    # The numbers of phases whose models are no better than chance, and after which the campaign was told to go on.
    went_on: tuple[int, ...] = ()
    finished: bool = False
    resumed: int = 0
    corrections: int = 0
    withdrawn: frozenset[str] = field(default=frozenset(), repr=False)
    # Who labels on the page, and what each of them said, by question (a record or, with one label per unit, a unit) and
    # person (Opinion.who).
    arrangement: Arrangement = field(default_factory=Arrangement, repr=False)
    opinions: dict[str, dict[str, Opinion]] = field(default_factory=dict[str, dict[str, Opinion]], repr=False)
    # Answers from files and oracles, by record: each counts until an arbiter or another file says otherwise.
    filed: dict[str, Answer] = field(default_factory=dict[str, Answer], repr=False)
    # The number of the last entry of the inbox that was taken in.
    inbox: int = 0

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The ids of each group's records."""
        return tuple(selection.to_label for selection in self.selected)

    @property
    def asked(self) -> tuple[tuple[str, ...], ...]:
        """Each group's units; where none are named, its records."""
        return tuple(selection.chosen for selection in self.selected)

    @property
    def phases_ended(self) -> int:
        """How many phases are trained or given up; so, the number of the next one."""
        return len(self.trained) + len(self.given_up)

    @property
    def settings(self) -> str:
        """The hash that the configuration must have now."""
        return self.changed_settings or self.created.settings

    def missing(self, group: int) -> list[str]:
        """The ids of a group that have no answer yet."""
        return [name for name in self.groups[group] if name not in self.answers and name not in self.withdrawn]

    def trainable(self, group: int) -> list[str]:
        """The ids of a group with a label; skipped and withdrawn ones are left out."""
        labelled = (name for name in self.groups[group] if self.answers.get(name, NO_LABEL[0]) not in NO_LABEL)
        return [name for name in labelled if name not in self.withdrawn]

    def taken(self) -> set[str]:
        """Units, or records, that no selection may offer again."""
        return {name for selection in self.selected for name in (*selection.chosen, *selection.retired)}


def fold(recorded: Iterable[Recorded], *, start: State | None = None) -> State:
    """The state after these facts, which follow on `start`. Facts that contradict each other are refused."""
    state = start
    for entry in recorded:
        if state is None:
            if not isinstance(entry.fact, Created):
                raise DamagedCampaign("The campaign's first fact is not its creation.")
            state = State(created=entry.fact, last=entry.number, last_at=entry.at, last_hash=entry.hash)
        else:
            state = after(state, entry.number, entry.at, entry.hash, entry.fact)
    if state is None:
        raise DamagedCampaign("The campaign's database holds no facts.")
    return state


def after(state: State, number: int, at: str, hashed: str, fact: Fact) -> State:
    """The state with one more fact; a fact that is not valid at this point is refused."""
    return replace(_after(state, number, fact), last=number, last_at=at, last_hash=hashed)


def _after(state: State, number: int, fact: Fact) -> State:
    match fact:
        case ChargedMean() | ChargedSelection() | ChargedTraining():
            _require(state.open_charge is None and not state.finished, number, "is a charge while another one is open")
            match fact:
                case ChargedMean():
                    in_order = not state.charges
                case ChargedSelection():
                    in_order = fact.group == len(state.selected)
                case ChargedTraining():
                    in_order = fact.phase == state.phases_ended
            _require(in_order, number, "is a charge out of order")
            charges = (*state.charges, (number, fact))
            return replace(state, charges=charges, open_charge=(number, fact), sealed_with=number)
        case MeanReleased():
            _require(_is_open(state, fact.charge, ChargedMean), number, "is a mean that was not charged")
            return replace(state, mean=fact.mean, open_charge=None, sealed_with=None)
        case Selected():
            _require(_is_open(state, fact.charge, ChargedSelection), number, "is a selection that was not charged")
            _require(fact.group == len(state.selected), number, "is a selection out of order")
            everyone = [*fact.chosen, *fact.retired]
            is_new = len(set(everyone)) == len(everyone) and not state.taken() & set(everyone)
            asked = {name for group in state.groups for name in group}
            is_new = is_new and len(set(fact.to_label)) == len(fact.to_label) and not asked & set(fact.to_label)
            _require(is_new, number, "selects a record a second time")
            records = fact.to_label if fact.units is not None else everyone
            _require(not state.withdrawn & set(records), number, "selects a withdrawn record")
            _require((fact.units is None) == (state.created.unit is None), number, "selects other units than promised")
            _require((fact.contents is not None) == state.created.large, number, "keeps other copies than promised")
            return replace(state, selected=(*state.selected, fact), open_charge=None, sealed_with=None, scored=None)
        case Scored():
            _require(_is_open(state, fact.charge, ChargedSelection), number, "is a scoring that was not charged")
            _require(state.created.large and state.scored is None, number, "scores a second time for one charge")
            return replace(state, scored=fact)
        case Produced():
            _require(_is_open(state, fact.charge, ChargedTraining), number, "is a model that was not charged")
            _require(
                fact.phase == state.phases_ended and state.produced is None, number, "is a second model for one charge"
            )
            return replace(state, produced=fact)
        case Trained():
            _require(_is_open(state, fact.charge, ChargedTraining), number, "is a model that was not charged")
            _require(fact.phase == state.phases_ended, number, "is a training phase out of order")
            _require(fact.file == checkpoint_name(fact.phase), number, "names a model in the wrong place")
            made = state.produced
            same = made is not None and (fact.sha256, fact.export_sha256) == (made.sha256, made.export_sha256)
            _require(same, number, "is not the model that was made for its charge")
            return replace(state, trained=(*state.trained, fact), open_charge=None, sealed_with=None, produced=None)
        case GivenUp():
            _require(_is_open(state, fact.charge, ChargedTraining), number, "gives up a phase that was not charged")
            _require(fact.phase == state.phases_ended, number, "gives up a phase out of order")
            _require(state.produced is None, number, "gives up a phase whose model was made")
            given_up = (*state.given_up, fact.phase)
            return replace(state, given_up=given_up, changed_settings=fact.settings, open_charge=None, sealed_with=None)
        case Answered():
            asked = {name for group in state.groups for name in group}
            _require(set(fact.answers) <= asked, number, "answers a question that was not asked")
            created, from_page = state.created, bool(fact.inbox)
            given = [answer for answer in fact.answers.values() if answer is not None]
            valid = all(is_answer(answer, created.classes, created.multi_label) for answer in given)
            _require(valid, number, "is an answer outside the classes")
            _require(from_page or len(given) == len(fact.answers), number, "takes answers back that nobody gave")
            # Only what people said carries the inbox on; decisions may follow from a new arrangement.
            is_next = fact.inbox > state.inbox if fact.opinions else fact.inbox >= state.inbox or not from_page
            _require(is_next, number, "is taken in a second time")
            now: dict[str, Answer | None] = {**state.answers, **fact.answers}
            answers = {name: answer for name, answer in now.items() if answer is not None}
            return replace(
                state,
                answers=answers,
                corrections=state.corrections + sum(name in state.answers for name in fact.answers),
                opinions=_with_opinions(state.opinions, fact.opinions),
                filed=state.filed if from_page else {**state.filed, **{name: answers[name] for name in fact.answers}},
                inbox=fact.inbox or state.inbox,
            )
        case Arranged():
            _require(fact.inbox > state.inbox, number, "is taken in a second time")
            return replace(state, arrangement=Arrangement.from_json(fact.body()), inbox=fact.inbox)
        case Closed():
            _require(
                fact.group < len(state.selected) and not state.finished,
                number,
                "closes a labelling round that does not exist",
            )
            return replace(state, closed=state.closed | {fact.group})
        case Evaluated():
            _require(
                fact.phase in [trained.phase for trained in state.trained[-1:]],
                number,
                "evaluates a model that is not the newest",
            )
            return replace(state, evaluated=(*state.evaluated, fact))
        case WentOn():
            is_newest = fact.phase in [evaluated.phase for evaluated in state.evaluated[-1:]]
            _require(
                is_newest and fact.phase not in state.went_on, number, "goes on from a model that is not the newest"
            )
            _require(state.open_charge is None and not state.finished, number, "goes on in the middle of a step")
            return replace(state, went_on=(*state.went_on, fact.phase), changed_settings=fact.settings)
        case Finished():
            _require(state.open_charge is None and not state.finished, number, "ends the campaign out of order")
            return replace(state, finished=True)
        case Resumed():
            is_open = state.open_charge is not None and state.open_charge[0] == fact.charge
            _require(is_open, number, "resumes a step that was not open")
            return replace(state, resumed=state.resumed + 1)
        case Withdrawn():
            is_new = bool(fact.ids) and not state.withdrawn & set(fact.ids)
            _require(is_new, number, "withdraws a record a second time")
            # A step under way gets a new key with the withdrawal, unless its model is already made.
            sealed_with = state.sealed_with if state.open_charge is None or state.produced is not None else number
            # And its scores, which leave the withdrawn records out.
            withdrawn = state.withdrawn | set(fact.ids)
            return replace(state, withdrawn=withdrawn, sealed_with=sealed_with, scored=None)
        case _:
            raise DamagedCampaign(f"Fact {number} ({fact.kind}) is not valid at this point.")


def _with_opinions(
    known: dict[str, dict[str, Opinion]], new: Iterable[Mapping[str, Any]]
) -> dict[str, dict[str, Opinion]]:
    """Each person's newest opinion on each question."""
    opinions = dict(known)
    for document in new:
        opinion = Opinion.from_json(document)
        opinions[opinion.question] = {**opinions.get(opinion.question, {}), opinion.who: opinion}
    return opinions


def _is_open(state: State, charge: int, kind: type[Charge]) -> bool:
    return state.open_charge is not None and state.open_charge[0] == charge and isinstance(state.open_charge[1], kind)


def _require(condition: bool, number: int, what: str) -> None:
    if not condition:
        raise DamagedCampaign(f"Fact {number} {what}. Facts are only ever added in order: someone changed them.")


@dataclass(frozen=True, slots=True)
class ReleaseMean:
    """Release a private mean of the pool's features."""


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
    """Everything is done; only the record of it is missing."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """The campaign is finished."""


Step: TypeAlias = ReleaseMean | Select | WaitForLabels | Train | Finish | Nothing


def next_step(state: State, schedule: Schedule) -> Step:
    """What is to be done next. A step that was charged already comes first."""
    if state.open_charge is not None:
        match state.open_charge[1]:
            case ChargedMean():
                return ReleaseMean()
            case ChargedSelection(group=group):
                return Select(group)
            case ChargedTraining(phase=phase):
                return Train(phase)
    if state.finished:
        return Nothing()
    if schedule.mean_noise_multiplier is not None and state.mean is None:
        return ReleaseMean()
    phase = state.phases_ended
    if phase == len(schedule.phases):
        return Finish()
    groups = len(schedule.phases[phase].sampling_probabilities)
    for group in range(len(state.selected)):
        if group not in state.closed and state.missing(group):
            return WaitForLabels(group)
    return Select(len(state.selected)) if len(state.selected) < groups else Train(phase)
