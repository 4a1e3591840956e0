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

    name: str
    score: float
    chance: float
    # How far above chance a model that knows nothing may come by luck, with so few records.
    luck: float
    # Whether even perfect answers would be above that; if not, there are too few records to tell.
    can_tell: bool

    @property
    def is_chance(self) -> bool:
        return self.can_tell and not self.score > self.chance + self.luck


def verdict_of(fact: Evaluated) -> Verdict | None:
    """The verdict on an evaluated model. None if its counts were not recorded, or there are not two classes.

    Balanced accuracy: always answering the same class has 1 / classes. Answers that have nothing to do with the records
    are as good as shuffled ones, whose standard deviation is exact. AUC: likewise, the scores are shuffled.
    """
    if fact.class_areas:
        pairs = zip(fact.class_areas, fact.class_records, strict=True)
        deviations = [_area_deviation(present, fact.records) for area, present in pairs if area is not None]
        if not deviations:
            return None
        # Classes go together, so the mean may vary as much as each of them: an upper bound.
        luck = _DEVIATIONS * math.fsum(deviations) / len(deviations)
        auc = fact.metrics["auc"]
        return Verdict(name="mean AUC", score=auc, chance=0.5, luck=luck, can_tell=0.5 + luck < 1)
    present = sum(records > 0 for records in fact.class_records)
    if present < 2 or not fact.class_answers:
        return None
    luck = _DEVIATIONS * _shuffled_deviation(fact.class_records, fact.class_answers)
    most = _DEVIATIONS * _shuffled_deviation(fact.class_records, fact.class_records)
    return Verdict(
        name="balanced accuracy",
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


def _area_deviation(present: int, records: int) -> float:
    """The standard deviation of an AUC if the scores are dealt out at random (Mann and Whitney 1947), without ties."""
    return math.sqrt((records + 1) / (12 * present * (records - present)))


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


def in_words(evaluated: Sequence[Evaluated], place: int, classes: Sequence[str]) -> str:
    """How good a model is, compared with the most frequent class and with the model before it."""
    fact, verdict = evaluated[place], verdict_of(evaluated[place])
    if "accuracy" in fact.metrics:
        said = f"{fact.metrics['accuracy']:.1%} of the {fact.records:,} held-out records are right"
        if (most := majority(fact)) is not None:
            said += f"; always answering '{classes[most[0]]}' would be right for {most[1]:.1%}"
    elif verdict is not None:
        said = f"the mean AUC on {fact.records:,} held-out records is {verdict.score:.3f}; chance has 0.500"
    else:
        return f"{fact.records:,} held-out records, of which too few say anything"
    name = "auc" if "auc" in fact.metrics else "balanced_accuracy"
    said += "" if name == "auc" else f". Balanced accuracy {fact.metrics[name]:.1%}"
    if before := [scores for scores in evaluated[:place] if name in scores.metrics]:
        is_better = fact.metrics[name] > before[-1].metrics[name]
        said += f", after phase {before[-1].phase + 1} {_shown(before[-1], name)}"
        said += "" if is_better else ": it has not become better"
    if verdict is not None and verdict.is_chance:
        said += f". {no_better(fact, verdict)}"
    return said


def _shown(fact: Evaluated, name: str) -> str:
    return f"{fact.metrics[name]:.3f}" if name == "auc" else f"{fact.metrics[name]:.1%}"


def no_better(fact: Evaluated, verdict: Verdict) -> str:
    """Why a model counts as no better than chance, with the numbers."""
    most = rounded_up(100 * (verdict.chance + verdict.luck), 1)
    return (
        f"No better than chance: the {verdict.name} is {verdict.score:.1%}. A model that knows nothing has "
        f"{verdict.chance:.1%}, and with {fact.records:,} held-out records up to {most:.1f}% by luck"
    )
