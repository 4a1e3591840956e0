"""What can happen in a campaign, as frozen values with JSON in and out. Facts are only ever added."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, cast

from dpal.errors import DamagedCampaign
from dpal.labels.answers import Answer, answer_from_json
from dpal.randomness import new_key


def fresh_salt() -> str:
    """Bits that cannot be guessed."""
    return new_key().hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Base of all facts. Nothing private is shown in a repr."""

    kind: ClassVar[str]

    def body(self) -> dict[str, Any]:
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Created(Fact):
    """The campaign begins: the whole plan, and which pool it is for."""

    kind: ClassVar[str] = "created"
    dpal_version: str
    plan: Mapping[str, Any] = field(repr=False)
    plan_hash: str
    # The hash of contents.db: every record's id, unit and keyed fingerprint, in order.
    contents: str
    # In units: how many records they have is private.
    pool_size: int
    classes: tuple[str, ...]
    multi_label: bool
    acquisition: str
    # Records that were labelled before, or () if the initial set is drawn at random.
    initial: tuple[str, ...] = field(repr=False)
    # The hash of the file with the first weights.
    weights: str
    # The hash of the configuration without the places of the data, which may move.
    settings: str
    # A seed makes noise predictable: nothing is private then, and every output says so.
    seed: int | None
    # Import paths of code that is not dpal's: a model, an acquisition function, an oracle, a planner, a selection.
    foreign_code: tuple[str, ...] = ()
    # Whether ids may leave the machine as they are; otherwise records get opaque names outside.
    ids_are_free_of_content: bool = False
    # What is public about the encoder whose features the model reads; None if it reads the records themselves.
    encoder: Mapping[str, Any] | None = None
    # What the promise protects one of where it is not a record: its word, the most of its records that are used, and
    # whether people give one label for all of them.
    unit: Mapping[str, Any] | None = None
    # Whether the pool is never in memory: `contents` is then the hash of blocks.json, its row groups' fingerprints.
    large: bool = False
    # Of a large pool: the hash of the held-out set, which is compared with all records only now. None without one.
    held_out: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedMean(Fact):
    """A private mean of the whole pool is paid for."""

    kind: ClassVar[str] = "charged-mean"
    noise_multiplier: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanReleased(Fact):
    """The private mean of the pool's features. This is what was charged for."""

    kind: ClassVar[str] = "mean-released"
    charge: int
    mean: tuple[float, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedSelection(Fact):
    """A selection is paid for. `group` is the group it chooses; group 0 is the initial set, drawn at random."""

    kind: ClassVar[str] = "charged-selection"
    group: int
    selection: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedTraining(Fact):
    """A training phase is paid for."""

    kind: ClassVar[str] = "charged-training"
    phase: int
    steps: int
    noise_multiplier: float
    expected_batch_size: float
    sampling_probabilities: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected(Fact):
    """The records that a selection asks for, and what it retired. This is what was charged for."""

    kind: ClassVar[str] = "selected"
    charge: int
    group: int
    to_label: tuple[str, ...] = field(repr=False)
    retired: tuple[str, ...] = field(repr=False)
    threshold: float | None
    # Random, as for answers: with selections inside, the chain's hash must not confirm a guess about who was chosen.
    salt: str = field(repr=False, compare=False, default_factory=fresh_salt)
    # The units that were chosen, to which these records belong; what was retired are units too. None: single records.
    units: tuple[str, ...] | None = field(repr=False, default=None)
    # Of a large pool: the hash of ids and fingerprints of the copies of these records.
    contents: str | None = field(repr=False, default=None)

    @property
    def chosen(self) -> tuple[str, ...]:
        """What was chosen: units or, where none are named, records."""
        return self.to_label if self.units is None else self.units


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored(Fact):
    """A large pool is scored for the open charge. Nothing has been chosen by these scores yet."""

    kind: ClassVar[str] = "scored"
    charge: int
    # A keyed hash of all scores, which are deleted afterwards.
    scores: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(Fact):
    """Answers of experts, from an import, an oracle or the labelling page; an id that was answered before is corrected.

    None: the record has no answer any more, because it was taken back or because experts differ.
    """

    kind: ClassVar[str] = "answered"
    source: str
    answers: Mapping[str, Answer | None] = field(repr=False)
    # Random: the hash of the chain is shown, and without this it would confirm a correctly guessed label.
    salt: str = field(repr=False, default_factory=fresh_salt)
    # From the labelling page: what each person said (Opinion.to_json), and up to where the inbox is taken in.
    opinions: tuple[Mapping[str, Any], ...] = field(repr=False, default=())
    inbox: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arranged(Fact):
    """Who labels, who sees what, and the rule for several answers, from now on (Arrangement.to_json)."""

    kind: ClassVar[str] = "arranged"
    people: tuple[Mapping[str, Any], ...] = field(repr=False)
    see: str
    overlap: float
    rule: str
    # Up to where the inbox is taken in.
    inbox: int
    operator: int = 0
    salt: str = field(repr=False, default_factory=fresh_salt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(Fact):
    """A group's round of labelling ends; records without an answer are left out until one comes."""

    kind: ClassVar[str] = "closed"
    group: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced(Fact):
    """A phase's model is made, and from now on this file and no other belongs to the charge, whatever happens.

    Recorded before the file gets its name, so that no model can ever be seen that the facts do not mention.
    """

    kind: ClassVar[str] = "produced"
    charge: int
    phase: int
    sha256: str
    # The hash of the file that dpal export-model writes for this phase.
    export_sha256: str
    engine: str
    seconds: float
    # How many processes trained it together.
    processes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained(Fact):
    """A phase's model, in a file with this hash. This is what was charged for."""

    kind: ClassVar[str] = "trained"
    charge: int
    phase: int
    file: str
    sha256: str
    export_sha256: str
    engine: str
    seconds: float
    processes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated(Fact):
    """A model's scores on a public held-out set, with the counts that say how far they can be trusted."""

    kind: ClassVar[str] = "evaluated"
    phase: int
    records: int
    metrics: Mapping[str, float]
    # In the order of the classes: how many held-out records have the class, how many of these were answered with it,
    # and how many records were answered with it in all. With several labels per record, only the first.
    class_records: tuple[int, ...] = ()
    class_right: tuple[int, ...] = ()
    class_answers: tuple[int, ...] = ()
    # With several labels per record: the AUC of each class; None where it has none or is not evaluated.
    class_areas: tuple[float | None, ...] = ()
    # And the standard deviation that the mean AUC would have if the scores were dealt out to the records at random.
    auc_deviation: float | None = None
    # Calibration, by tenths of confidence: answers, how many of them are right, and their mean confidence.
    bin_answers: tuple[int, ...] = ()
    bin_right: tuple[int, ...] = ()
    bin_confidence: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Fact):
    """The whole plan has been carried out."""

    kind: ClassVar[str] = "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed(Fact):
    """A step that was charged and then died is repeated with the same sealed randomness."""

    kind: ClassVar[str] = "resumed"
    charge: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn(Fact):
    """Records that are never used again. What was charged before still counts."""

    kind: ClassVar[str] = "withdrawn"
    ids: tuple[str, ...] = field(repr=False)
    reason: str = field(repr=False)
    # Random, as for answers: the chain's hash must not confirm a guess about who was withdrawn.
    salt: str = field(repr=False, default_factory=fresh_salt)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp(Fact):
    """A phase that is charged and cannot finish is given up: its charge still counts, and its model is never used."""

    kind: ClassVar[str] = "given-up"
    charge: int
    phase: int
    # Why, in the words of the person who gave it up. It stays in the folder.
    reason: str = field(repr=False)
    # The hash of the configuration from now on; it may differ from the earlier one in how to train.
    settings: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WentOn(Fact):
    """The campaign goes on although the model of this phase is no better than chance, because someone said so."""

    kind: ClassVar[str] = "went-on"
    phase: int
    # The hash of the configuration from now on; it may differ from the earlier one in how to train.
    settings: str


KINDS: dict[str, type[Fact]] = {
    kind_of_fact.kind: kind_of_fact
    for kind_of_fact in (
        Created,
        ChargedMean,
        MeanReleased,
        ChargedSelection,
        ChargedTraining,
        Scored,
        Selected,
        Answered,
        Arranged,
        Closed,
        Produced,
        Trained,
        Evaluated,
        Finished,
        Resumed,
        Withdrawn,
        GivenUp,
        WentOn,
    )
}


def to_text(fact: Fact) -> str:
    """The body as JSON, always the same for the same fact."""
    return json.dumps(fact.body(), sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def from_text(kind: str, text: str) -> Fact:
    """The fact that a text states. An error quotes nothing of the text: answers are private."""
    try:
        body = cast("dict[str, Any]", json.loads(text))
        made = {name: tuple(value) if isinstance(value, list) else value for name, value in body.items()}
        if kind == Answered.kind:
            made["answers"] = {
                name: None if value is None else answer_from_json(value) for name, value in body["answers"].items()
            }
        return KINDS[kind](**made)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedCampaign(f"A fact of the kind {kind!r} cannot be read ({type(error).__name__}).") from error
