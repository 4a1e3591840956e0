"""The two promises in plain words: the one place for what plans, status, reports, model cards and certificates say."""

from collections.abc import Sequence
from dataclasses import dataclass

from dpal.planning.plan import Plan
from dpal.selection.selection import INSIDE, RELEASED

_MODELS = "the model after every training phase, and every training step that led to it"
_DOCUMENTS = "this certificate, the plan and the number of records"
_COVERED = "Everything released is covered: every model and checkpoint, every training step, and"
_NOT_RELEASED = (
    "how many records took part in a step, and gradients before noise",
    "the randomness of any step",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseWords:
    """What a promise covers, for people who must decide whether it suits them."""

    # One line, for tables and pictures.
    short: str
    # For the officer: what the promise hides, from whom, and what it does not hide.
    meaning: str
    released: tuple[str, ...]
    not_released: tuple[str, ...]
    # What it assumes, beyond what both promises do.
    assumptions: tuple[str, ...]

    @property
    def in_full(self) -> str:
        return f"{self.short} {self.meaning}"


WORDS = {
    INSIDE: PromiseWords(
        short="Selections stay inside: models, cuts and the plan are released; which records are labelled, and how "
        "many, is not.",
        meaning="Whether a record was in the pool, and what it contained, is protected by ε and δ from anyone who "
        "sees every model and every cut. Someone who holds a copy of a record and knows that it was in the pool can "
        "compute from the models and cuts whether and when it was labelled. The list of labelled records (ids, "
        "numbers, times, invoices) must never leave the operator: if it leaks, even years later, it tells exactly "
        "which records were above the cut. Where the chosen ids themselves are an output, plan with selections "
        "released.",
        released=(_MODELS, "the cuts of selections: how high a score had to be", _DOCUMENTS),
        not_released=(
            "the records, their labels and scores",
            "which records were selected for labelling, how many, when, and what labelling them cost",
            *_NOT_RELEASED,
        ),
        assumptions=(
            "The number of records, their ids in the pool, the classes and the plan are public.",
            "The initial set is public, or it was drawn at random without looking at any record.",
            f"{_COVERED} every cut.",
            "Which records were asked for or skipped, their number, labels, times and invoices stay inside for good.",
            "The scaling of inputs is public or a planned private mean: nothing else about it comes from the pool.",
            "Whenever a phase is trained, more than one record has a label.",
            "Labels, skips and corrections of a record depend on it and on what was released before, on nothing else.",
            "Labelling rounds end at a set time or when every answer is there, never at a certain number of labels.",
            "No record was removed because it resembles another one (no deduplication across records).",
        ),
    ),
    RELEASED: PromiseWords(
        short="Selections are released: models, thresholds, and which records were chosen are all covered by ε and δ.",
        meaning="Which records were chosen for labelling, and how many, may be passed on: the list of their ids is "
        "covered by ε and δ like the models. To cover it, the choice itself is noisy.",
        released=(
            _MODELS,
            "the ids of the records that were selected for labelling or retired",
            "the thresholds of threshold selections",
            _DOCUMENTS,
        ),
        not_released=("the records, their labels and scores", *_NOT_RELEASED),
        assumptions=(
            "The number of records, their ids, the classes, the plan and the choice of the initial set are public.",
            f"{_COVERED} which records were chosen.",
        ),
    ),
}


def released_words(plan: Plan) -> list[str]:
    """What a campaign with this plan releases."""
    mean = ["a private mean of the features of all records in the pool"] if plan.setting.mean is not None else []
    return [*mean, *WORDS[plan.setting.promise].released]


def expected_labels(plan: Plan) -> tuple[int, ...]:
    """The planned number of labels of each group. Real numbers stay inside where selections do."""
    return (plan.groups[0].size, *(selection.expected_number for selection in plan.selections))


def by_phase(plan: Plan, group_sizes: Sequence[int]) -> list[int]:
    """How many labels there are before each phase that can be trained with these groups."""
    counts = [len(phase.sampling_probabilities) for phase in plan.phases]
    return [sum(group_sizes[:count]) for count in counts if count <= len(group_sizes)]
