"""Whether a model is better than chance on the public held-out set. If it is not, the campaign stops.

All of this comes from a public set and from models that were released, so it costs no privacy.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpal.campaign.facts import Evaluated
from dpal.campaign.metrics import majority
from dpal.campaign.state import Select, State, Train, next_step
from dpal.planning.plan import Schedule
from dpal.privacy.rounding import rounded_up

# Standard deviations above chance. A model that knows nothing gets there about once in forty times.
_DEVIATIONS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A model's score, and what a model that knows nothing about the records would have."""

    metric: str
    score: float
    chance: float
    # How far above chance a model that knows nothing may come by luck, with so few records.
    luck: float
    # Whether even perfect answers would be above that; if not, there are too few records to tell.
    can_tell: bool

    @property
    def name(self) -> str:
        return "mean AUC" if self.metric == "auc" else "balanced accuracy"

    @property
    def is_chance(self) -> bool:
        return self.can_tell and not self.score > self.chance + self.luck


def verdict_of(fact: Evaluated) -> Verdict | None:
    """The verdict on an evaluated model. None if its counts were not recorded, or there are not two classes.

    Balanced accuracy: always answering the same class has 1 / classes. Answers that have nothing to do with the records
    are as good as shuffled ones, whose standard deviation is exact. AUC: likewise, with shuffled scores.
    """
    if fact.auc_deviation is not None:
        luck = _DEVIATIONS * fact.auc_deviation
        return Verdict(metric="auc", score=fact.metrics["auc"], chance=0.5, luck=luck, can_tell=0.5 + luck < 1)
    present = sum(records > 0 for records in fact.class_records)
    if present < 2 or not fact.class_answers:
        return None
    luck = _DEVIATIONS * _shuffled_deviation(fact.class_records, fact.class_answers)
    most = _DEVIATIONS * _shuffled_deviation(fact.class_records, fact.class_records)
    return Verdict(
        metric="balanced_accuracy",
        score=fact.metrics["balanced_accuracy"],
        chance=1 / present,
        luck=luck,
        can_tell=1 / present + most < 1,
    )


def _shuffled_deviation(records: Sequence[int], answers: Sequence[int]) -> float:
    """The standard deviation of the balanced accuracy if these answers are dealt out to the records at random.

    The number of right answers of a class is hypergeometric, and that of two classes has the covariance
    n_c·m_c·n_d·m_d / (N²·(N − 1)), where n counts records, m answers and N all records.
    """
    total = sum(records)
    counts = [(n, m) for n, m in zip(records, answers, strict=True) if n > 0]
    own = math.fsum(m * (total - n) * (total - m) / n for n, m in counts)
    shared = sum(m for _, m in counts) ** 2 - sum(m * m for _, m in counts)
    return math.sqrt(max(0.0, own + shared) / (total * total * (total - 1))) / len(counts)


def stopped_after(state: State, schedule: Schedule) -> int | None:
    """The phase whose model is no better than chance, if the next step would be charged and nobody said to go on.

    A simulation never stops: it costs no privacy.
    """
    if state.open_charge is not None or state.created.seed is not None or not state.evaluated:
        return None
    newest = state.evaluated[-1]
    if newest.phase in state.went_on or newest.phase != state.trained[-1].phase:
        return None
    if not isinstance(next_step(state, schedule), Select | Train):
        return None
    verdict = verdict_of(newest)
    return newest.phase if verdict is not None and verdict.is_chance else None


def ends_at_chance(evaluated: Sequence[Evaluated]) -> bool:
    """Whether the newest model is no better than chance."""
    verdict = verdict_of(evaluated[-1]) if evaluated else None
    return verdict is not None and verdict.is_chance


def in_words(evaluated: Sequence[Evaluated], place: int, classes: Sequence[str]) -> str:
    """How good a model is, compared with the most frequent class and with the model before it."""
    fact, verdict = evaluated[place], verdict_of(evaluated[place])
    if "accuracy" in fact.metrics:
        said = f"{fact.metrics['accuracy']:.1%} of the {fact.records:,} held-out records are right"
        if (most := majority(fact)) is not None:
            said += f"; always answering '{classes[most[0]]}' would be right for {most[1]:.1%}"
        said += f". Balanced accuracy {_with_earlier(evaluated, place, 'balanced_accuracy')}"
    elif "auc" in fact.metrics:
        said = f"the mean AUC on {fact.records:,} held-out records is {_with_earlier(evaluated, place, 'auc')}"
        said += "; chance has 0.500"
    else:
        return f"{fact.records:,} held-out records, of which too few say anything"
    if verdict is not None and verdict.is_chance:
        said += f". {no_better(fact, verdict)}"
    return said


def _with_earlier(evaluated: Sequence[Evaluated], place: int, name: str) -> str:
    """A score, and the same one after the phase before."""
    now = evaluated[place].metrics[name]
    earlier = [fact for fact in evaluated[:place] if name in fact.metrics]
    if not earlier:
        return _shown(now, name)
    before = earlier[-1].metrics[name]
    worse = "" if now > before or now == 1 else ", so it has not become better"
    return f"{_shown(now, name)} ({_shown(before, name)} after phase {earlier[-1].phase + 1}{worse})"


def _shown(score: float, name: str) -> str:
    return f"{score:.3f}" if name == "auc" else f"{score:.1%}"


def no_better(fact: Evaluated, verdict: Verdict) -> str:
    """Why a model counts as no better than chance, with the numbers."""
    if sum(answers > 0 for answers in fact.class_answers) == 1:
        return (
            "No better than chance: it gives the same answer to every record. A model that knows nothing has a "
            f"{verdict.name} of {_shown(verdict.chance, verdict.metric)}"
        )
    limit = verdict.chance + verdict.luck
    most = f"{rounded_up(limit, 3):.3f}" if verdict.metric == "auc" else f"{rounded_up(100 * limit, 1):.1f}%"
    return (
        f"No better than chance: a model that knows nothing has a {verdict.name} of "
        f"{_shown(verdict.chance, verdict.metric)}, and with {fact.records:,} held-out records up to {most} by luck. "
        f"This one has {_shown(verdict.score, verdict.metric)}"
    )
