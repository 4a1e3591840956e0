"""Black box: the likelihood-ratio attack with shadow models (LiRA; Carlini et al. 2022) on the exported model."""

import time
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from dpal.audit.attack import Attack, Effort, Evidence, Finding, Target, finding, randomness_of
from dpal.audit.claims import claim_of_plan
from dpal.audit.stand_in import StandIn, exported_logits, label_margin, memorable_digits, new_learner, seats, train
from dpal.errors import InvalidArgument

# With fewer models per record and side, one variance for all records is more certain than one each.
_ENOUGH_FOR_VARIANCES = 24
_SMALLEST_VARIANCE = 1e-6
# The models that are attacked; the others are the attacker's own.
_ATTACKED_SHARE = 4
FALSE_POSITIVE_RATES = (0.001, 0.01)

Margins = NDArray[np.float64]
Members = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarginModel:
    """Two Gaussians for each record: its margin where it was in training, and where it was not."""

    mean_in: Margins = field(repr=False)
    mean_out: Margins = field(repr=False)
    variance_in: Margins = field(repr=False)
    variance_out: Margins = field(repr=False)

    @classmethod
    def of(cls, margins: Margins, members: Members) -> "MarginModel":
        """From shadow models: rows are models, columns records; `members` says who was in which one's training.

        A record's own difference is drawn towards everybody's mean difference as far as it is uncertain, so that few
        models are enough; with many it is its own.
        """
        if margins.shape != members.shape or len(margins) < 2:
            raise InvalidArgument("the shadow models", margins.shape, f"at least 2, as members are: {members.shape}")
        inside, outside = members.sum(axis=0), (~members).sum(axis=0)
        both = (inside > 0) & (outside > 0)
        if not both.any():
            raise InvalidArgument("the shadow models", len(margins), "enough that some record is in one and not in all")
        mean_in = np.where(members, margins, 0.0).sum(axis=0) / np.maximum(1, inside)
        mean_out = np.where(members, 0.0, margins).sum(axis=0) / np.maximum(1, outside)
        rest = np.where(members, margins - mean_in, margins - mean_out)
        freedom = max(1, margins.size - int((inside > 0).sum() + (outside > 0).sum()))
        shared = max(_SMALLEST_VARIANCE, float((rest**2).sum()) / freedom)
        uncertain = shared * (1 / np.maximum(1, inside) + 1 / np.maximum(1, outside))
        difference = mean_in - mean_out
        typical = float(difference[both].mean())
        spread = max(0.0, float(difference[both].var() - uncertain[both].mean()))
        drawn = typical + np.where(both, spread / (spread + uncertain), 0.0) * (difference - typical)
        mean_out = (margins - np.where(members, drawn, 0.0)).mean(axis=0)
        variances = (
            _variance(np.where(side, rest, 0.0), count, shared)
            for side, count in ((members, inside), (~members, outside))
        )
        return cls(
            mean_in=mean_out + drawn,
            mean_out=mean_out,
            variance_in=next(variances),
            variance_out=next(variances),
        )

    def evidence(self, margins: Margins) -> Margins:
        """The log likelihood ratio of each record's margin in the attacked models, one per row."""
        inside = (margins - self.mean_in) ** 2 / self.variance_in + np.log(self.variance_in)
        outside = (margins - self.mean_out) ** 2 / self.variance_out + np.log(self.variance_out)
        return (outside - inside) / 2


def _variance(rest: Margins, count: NDArray[np.int64], shared: float) -> Margins:
    if count.min() < _ENOUGH_FOR_VARIANCES:
        return np.full(rest.shape[1], shared)
    return np.maximum(_SMALLEST_VARIANCE, (rest**2).sum(axis=0) / (count - 1))


def true_positive_rate(present: Evidence, absent: Evidence, false_positive_rate: float) -> float:
    """The share of those present above a threshold that so many of those absent are above, at most."""
    allowed = int(false_positive_rate * len(absent))
    threshold = np.sort(absent)[::-1][allowed] if allowed < len(absent) else -np.inf
    return float((present > threshold).mean())


def area_under_curve(present: Evidence, absent: Evidence) -> float:
    """How likely one that is present has more evidence than one that is not."""
    ranks = rankdata(np.concatenate([present, absent]))
    return float((ranks[: len(present)].mean() - (len(present) + 1) / 2) / len(absent))


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipInference(Attack):
    """Shadow models on random halves of a stand-in, trained as the plan says, and others like them that are attacked.

    Whether a record is in a model's training is a fair coin of its own, and nothing about the attacked models' coins
    goes into the attack. So all attacked models together are one run in the sense of the theorem.
    """

    name: ClassVar[str] = "membership-inference"
    what: ClassVar[str] = (
        "Someone who may only use the exported model, and can train others like it, guesses which records it learnt "
        "from."
    )
    # By default the embedded digits, with a model that learns each of them by heart.
    stand_in: StandIn | None = None

    def applies(self, target: Target) -> bool:
        return target.rows_per_unit == 1

    def run(self, target: Target, effort: Effort) -> Finding:
        start = time.monotonic()
        stand_in = memorable_digits() if self.stand_in is None else self.stand_in
        attacked = max(2, effort.shadow_models // _ATTACKED_SHARE)
        shadows = max(2, effort.shadow_models - attacked)
        margins, members, seated = trained_models(target, stand_in, shadows + attacked, effort)
        model = MarginModel.of(margins[:shadows, seated], members[:shadows, seated])
        evidence, there = model.evidence(margins[shadows:, seated]), members[shadows:, seated]
        present, absent = evidence[there], evidence[~there]
        low, high = (true_positive_rate(present, absent, rate) for rate in FALSE_POSITIVE_RATES)
        return finding(
            self,
            claim_of_plan(target.plan),
            present,
            absent,
            runs=shadows + attacked,
            seconds=time.monotonic() - start,
            one_run=True,
            independent=False,
            note=(
                f"{attacked} models attacked with {shadows} shadow models: true-positive rate {low:.2%} at 0.1% false "
                f"positives and {high:.2%} at 1%, area under the curve {area_under_curve(present, absent):.3f}"
            ),
        )


def trained_models(
    target: Target, stand_in: StandIn, count: int, effort: Effort
) -> tuple[Margins, Members, NDArray[np.int64]]:
    """The margins of all records in so many models, who was in the training of each, and who had a seat at all."""
    randomness = randomness_of(effort, stream=6)
    groups = seats(target.plan, len(stand_in), randomness)
    margins, members = list[Margins](), list[Members]()
    for _ in range(count):
        present = randomness.coins(Fraction(1, 2), len(stand_in))
        learner = new_learner(target, stand_in)
        train(learner, target.plan, stand_in.labels, groups, present, randomness)
        margins.append(label_margin(exported_logits(learner), stand_in.labels))
        members.append(present)
    return np.stack(margins), np.stack(members), np.concatenate(groups)
