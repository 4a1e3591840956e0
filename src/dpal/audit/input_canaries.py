"""A weak adversary: records made to be remembered, in one run, of which only the final model is seen."""

import time
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from dpal.audit.attack import Attack, Effort, Evidence, Finding, Target, finding, randomness_of
from dpal.audit.claims import claim_of_plan
from dpal.audit.stand_in import ROW_NORM, StandIn, digits, exported_logits, linear_model, new_learner, seats, train
from dpal.randomness import Randomness

# Canaries in one run: more of them cost more time than they bring.
_MOST = 4_000
_CLASSES = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Canaries:
    """Records of which some are canaries; the others are ordinary, and always there."""

    records: StandIn
    is_canary: NDArray[np.bool_] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputCanaries(Attack):
    """Canaries among ordinary records, each there by a fair coin; their score is how much the final model likes them.

    Without a stand-in a canary is a picture with one bright pixel, where all others are dark, and a random class. In a
    stand-in every other record is a canary, with a wrong class.
    """

    name: ClassVar[str] = "input-canaries"
    what: ClassVar[str] = (
        "Someone who may put odd records into the pool, and sees the final model alone, guesses which of them were "
        "trained on."
    )
    stand_in: StandIn | None = None

    def applies(self, target: Target) -> bool:
        return target.rows_per_unit == 1

    def run(self, target: Target, effort: Effort) -> Finding:
        start = time.monotonic()
        randomness = randomness_of(effort, stream=7)
        present, absent, runs = list[Evidence](), list[Evidence](), 0
        while sum(map(len, (*present, *absent))) < min(effort.canaries, _MOST * max(1, effort.shadow_models // 8)):
            there, gone = self._once(target, min(effort.canaries, _MOST), randomness)
            present.append(there)
            absent.append(gone)
            runs += 1
        return finding(
            self,
            claim_of_plan(target.plan),
            np.concatenate(present),
            np.concatenate(absent),
            runs=runs,
            seconds=time.monotonic() - start,
            one_run=True,
            independent=False,
            note=f"{sum(map(len, (*present, *absent))):,} canaries in {runs} final model{'s' if runs > 1 else ''}",
        )

    def _once(self, target: Target, canaries: int, randomness: Randomness) -> tuple[Evidence, Evidence]:
        if self.stand_in is None:
            made = with_lone_pixels(canaries, randomness)
        else:
            made = with_wrong_classes(self.stand_in, canaries, randomness)
        is_canary = made.is_canary
        coins = randomness.coins(Fraction(1, 2), len(is_canary))
        # Canaries train from the first phase on, with those who are labelled first.
        groups = seats(target.plan, int((~is_canary).sum()), randomness)
        groups = [np.flatnonzero(~is_canary)[group] for group in groups]
        groups[0] = np.concatenate([groups[0], np.flatnonzero(is_canary)])
        learner = new_learner(target, made.records)
        before = exported_logits(learner)
        train(learner, target.plan, made.records.labels, groups, coins | ~is_canary, randomness)
        labels = made.records.labels
        score = _loss(before, labels) - _loss(exported_logits(learner), labels)
        return score[is_canary & coins], score[is_canary & ~coins]


def with_lone_pixels(canaries: int, randomness: Randomness) -> Canaries:
    """The embedded digits, in pictures with as many more pixels as there are canaries, and one canary for each."""
    pixels, classes = digits()
    rows = np.zeros((len(pixels) + canaries, pixels.shape[1] + canaries), dtype=np.float32)
    rows[: len(pixels), : pixels.shape[1]] = ROW_NORM * pixels / np.linalg.norm(pixels, axis=1, keepdims=True)
    rows[len(pixels) :, pixels.shape[1] :] = ROW_NORM * np.eye(canaries)
    labels = np.concatenate([classes, randomness.integers(_CLASSES, canaries)])
    return Canaries(
        records=StandIn(inputs=rows, labels=labels, make_model=lambda: linear_model(rows.shape[1], _CLASSES)),
        is_canary=np.arange(len(rows)) >= len(pixels),
    )


def with_wrong_classes(stand_in: StandIn, canaries: int, randomness: Randomness) -> Canaries:
    """The stand-in with a wrong class for some of its records: half of them, or so many."""
    is_canary = np.zeros(len(stand_in), dtype=np.bool_)
    is_canary[randomness.subset(len(stand_in), min(canaries, len(stand_in) // 2))] = True
    classes = int(stand_in.labels.max()) + 1
    wrong = (stand_in.labels + 1 + randomness.integers(classes - 1, len(stand_in))) % classes
    labels = np.where(is_canary, wrong, stand_in.labels)
    return Canaries(
        records=StandIn(inputs=stand_in.inputs, labels=labels, make_model=stand_in.make_model), is_canary=is_canary
    )


def _loss(logits: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(logsumexp(logits, axis=1)) - logits[np.arange(len(labels)), labels]
