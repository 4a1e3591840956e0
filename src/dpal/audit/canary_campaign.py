"""A plan carried out on a pool of canaries, by the code that carries out real ones; what is released, as evidence.

A canary is the worst record there is: its gradient is longer than the clip and points where no other record's does, so
every noisy gradient shows it in a coordinate of its own. Whether it is there is a fair coin. With several rows per unit
a canary is a whole unit with all of them. The adversary sees everything that is released (noisy gradients, cuts or
chosen ids), knows the score that each canary would have, and so also when it would have joined. Rates, noise, steps and
the ε of selections are the plan's; sizes are those of the pool of canaries.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dpal.audit.attack import Evidence, Target
from dpal.audit.claims import epsilon_without_delta
from dpal.planning.plan import Phase
from dpal.privacy.mechanisms import BernoulliSelection
from dpal.randomness import Randomness
from dpal.selection.acquisition import MinimumMargin
from dpal.selection.cut import CutSelection
from dpal.selection.selection import RELEASED, Chosen, Selection
from dpal.training.loop import train_phase
from dpal.training.sampling import BLANK
from dpal.training.settings import ComputeSettings, TrainingSettings
from dpal.training.sources import TensorSource

# How much longer than the clip a canary's gradient is.
TOO_LONG = 10.0
NOBODY, UNSURE = -1, -2


class CanaryModel(nn.Module):
    """One weight for each canary. Its gradient does not depend on the weights, so training may move them freely."""

    def __init__(self, canaries: int) -> None:
        super().__init__()
        self.table = nn.Embedding(canaries, 1)
        nn.init.zeros_(self.table.weight)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.table(inputs)[:, 0]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CanaryPool:
    """Who is there, and the evidence of all releases so far: a log likelihood ratio, as the adversary computes it."""

    present: NDArray[np.bool_] = field(repr=False)
    evidence: Evidence = field(repr=False)
    # The group that each canary is made for: its scores are high from that selection on.
    meant_for: NDArray[np.int64] = field(repr=False)
    # The group with which each one really trains. A canary that is not there is a blank, which few selections take.
    group: NDArray[np.int64] = field(repr=False)
    # The group with which each one would train if it were there, as the adversary works out; UNSURE: cannot tell.
    believed: NDArray[np.int64] = field(repr=False)
    model: CanaryModel = field(repr=False)

    @classmethod
    def of(cls, canaries: int, group_sizes: Sequence[int], target: Target, randomness: Randomness) -> "CanaryPool":
        """A fair coin for everyone; a part of them for each group, in proportion to the groups' sizes."""
        ends = np.round(np.cumsum(group_sizes) / sum(group_sizes) * canaries).astype(np.int64)
        meant_for = np.searchsorted(ends, np.arange(canaries), side="right")
        group = np.where(meant_for == 0, 0, NOBODY)
        return cls(
            present=randomness.integers(2, canaries).astype(np.bool_),
            evidence=np.zeros(canaries),
            meant_for=meant_for,
            group=group,
            believed=group.copy(),
            model=CanaryModel(canaries).to(target.torch_device),
        )

    def split(self) -> tuple[Evidence, Evidence]:
        """The evidence about canaries that are there, and about the others."""
        return self.evidence[self.present], self.evidence[~self.present]


def carried_out(target: Target, canaries: int, randomness: Randomness, *, replayed: bool = False) -> CanaryPool:
    """The whole plan, from the initial set to the last phase.

    The adversary gives canaries the scores that are worst for them; `replayed`: their scores follow from the models.
    """
    plan = target.plan
    pool = CanaryPool.of(canaries, [group.size for group in plan.groups], target, randomness)
    groups = 1
    for phase in plan.phases:
        while groups < len(phase.sampling_probabilities):
            select(pool, plan.selections[groups - 1], groups, plan.setting.promise, randomness, replayed=replayed)
            groups += 1
        train(pool, phase, target, randomness)
    return pool


def trained(target: Target, canaries: int, randomness: Randomness) -> CanaryPool:
    """The plan's training alone, with all canaries in the initial set."""
    pool = CanaryPool.of(canaries, [canaries], target, randomness)
    for phase in target.plan.phases:
        train(pool, replace(phase, sampling_probabilities=phase.sampling_probabilities[:1]), target, randomness)
    return pool


def train(pool: CanaryPool, phase: Phase, target: Target, randomness: Randomness) -> None:
    """One phase of training on all that have joined, and what its noisy gradients say about each canary."""
    rates, noise = phase.sampling_probabilities, phase.noise_multiplier
    members = [np.flatnonzero(pool.group == group) for group in range(len(rates))]
    groups = [np.where(pool.present[group], group, BLANK) for group in members]
    if not any((group != BLANK).any() for group in groups):
        return
    # Everyone's coordinate is looked at, whether the canary is there or not.
    suspects = [(np.flatnonzero(pool.believed == group), rate) for group, rate in enumerate(rates) if rate > 0]
    # The draw has a size of its own here: the plan's rates, of these groups.
    expected = max(1.0, sum(rate * len(group) for rate, group in zip(rates, members, strict=True)))
    rows, weight = target.rows_per_unit, pool.model.table.weight
    # So large that a phase's noise moves the weights by about one.
    learning_rate = expected / (noise * target.max_grad_norm * math.sqrt(max(1, phase.steps)))

    def look(step: int) -> None:
        del step
        assert weight.grad is not None  # noqa: S101 (a step has just been made)
        seen = -weight.grad[:, 0].double().cpu().numpy() * expected / target.max_grad_norm
        for group, rate in suspects:
            pool.evidence[group] += log_ratio(seen[group], rate, noise)

    inputs = torch.arange(len(pool.present), device=weight.device).repeat_interleave(rows)[:, None]
    train_phase(
        pool.model,
        replace(phase, expected_batch_size=expected),
        source=TensorSource(inputs, torch.zeros(len(inputs), dtype=torch.int64, device=weight.device)),
        groups=groups,
        loss=partial(pull, strength=TOO_LONG * target.max_grad_norm),
        settings=TrainingSettings(
            optimizer="sgd", learning_rate=learning_rate, max_grad_norm=target.max_grad_norm, average=None
        ),
        compute=ComputeSettings(engine=target.engine, precision=target.precision, max_physical_batch_size=4096),
        randomness=randomness,
        after_step=look,
        description="attacking training",
        units=None if rows == 1 else np.arange(len(inputs)).reshape(-1, rows),
    )


def pull(outputs: Tensor, targets: Tensor, *, strength: float) -> Tensor:
    """A loss whose gradient has this length, wherever the weights are."""
    del targets
    return -strength * outputs[:, 0]


def log_ratio(seen: Evidence, rate: float, noise_multiplier: float) -> Evidence:
    """How much likelier a coordinate of a noisy sum is if its canary takes part at this rate, in units of the clip."""
    ratio = (2 * seen - 1) / (2 * noise_multiplier**2)
    return ratio if rate == 1 else np.logaddexp(math.log1p(-rate), math.log(rate) + ratio)


def select(
    pool: CanaryPool, selection: Selection, group: int, promise: str, randomness: Randomness, *, replayed: bool
) -> None:
    """One selection among all that have not joined, and what it says about each of them."""
    left = np.flatnonzero(pool.group == NOBODY)
    wanted = int((pool.meant_for == group).sum())
    if_there = _scores_of_models(pool, left) if replayed else _worst_scores(pool.meant_for[left] == group, randomness)
    selection = _for_canaries(selection, wanted, len(left))
    scores = np.where(pool.present[left], if_there, 0.0)
    blanks = np.zeros(max(0, selection.smallest_pool - len(left)))
    chosen = selection.choose(np.concatenate([scores, blanks]), highest=1.0, randomness=randomness)
    taken, retired = (np.isin(np.arange(len(left)), names) for names in (chosen.to_label, chosen.retired))
    pool.group[left[taken]] = group
    if promise == RELEASED or not selection.reads_scores:
        pool.believed[left[taken]] = group
        pool.evidence[left] += choice_evidence(selection, chosen, if_there, taken | retired)
        return
    # Above the cut for certain, or on its step, where coins decide that nobody outside knows.
    step, cut = np.ceil(if_there * selection.resolution), (chosen.threshold or 0.0) * selection.resolution
    above, at_it = step > cut - 1e-9, step == math.floor(cut + 1e-9)
    fresh = pool.believed[left] == NOBODY
    pool.believed[left[fresh & above]] = group
    if abs(cut - round(cut)) > 1e-9:
        pool.believed[left[fresh & at_it]] = UNSURE


def _for_canaries(selection: Selection, wanted: int, left: int) -> Selection:
    """The same selection with sizes for this pool. What it costs a record does not depend on sizes that are planned."""
    if isinstance(selection, CutSelection):
        # Half of those that are wanted are there; nearly all of them reach the cut.
        return replace(
            selection, query_size=max(1, wanted), unlabelled=max(1, left), wanted=max(1, round(0.45 * wanted))
        )
    share = selection.query_size / selection.unlabelled
    return replace(selection, query_size=max(1, round(share * left)), unlabelled=max(1, left))


def _worst_scores(meant: NDArray[np.bool_], randomness: Randomness) -> Evidence:
    """High for canaries that are meant to join now; for others low, but above a blank's."""
    parts = (1 + randomness.integers(2**20, len(meant))) / 2**20
    return np.where(meant, 0.5 + parts / 2, 0.4 * parts)


def _scores_of_models(pool: CanaryPool, left: NDArray[np.int64]) -> Evidence:
    """The margins that the newest released model gives, which anyone can compute who holds a canary."""
    logits = pool.model.table.weight.detach()[left, 0].double().cpu().numpy()
    # Contents of their own, so that scores are spread from the start.
    logits = logits + np.linspace(-3, 3, len(pool.group))[left]
    probability = 1 / (1 + np.exp(-logits))
    return MinimumMargin(classes=2).scores(np.stack([probability, 1 - probability], axis=1))


def choice_evidence(selection: Selection, chosen: Chosen, if_there: Evidence, taken: NDArray[np.bool_]) -> Evidence:
    """What a released choice says about each canary, by the probabilities with which it was made.

    Kinds whose probabilities depend on everyone's scores get the sign of the evidence, which is enough for a threshold.
    """
    choice = selection.released.choice
    if choice is None:
        return np.zeros(len(taken))
    if not isinstance(choice, BernoulliSelection):
        high = if_there >= np.quantile(if_there, 1 - selection.query_size / selection.unlabelled)
        # Gaussian noise has no ε of its own: there, any weight above 0 is as good.
        return np.where(taken & high, (epsilon_without_delta(choice) or 2.0) / 2, 0.0)
    above = if_there >= (chosen.threshold or 0.0)
    high, low = choice.probability_high, choice.probability_low
    if_taken, if_passed = math.log(high / low), math.log1p(-high) - math.log1p(-low)
    return np.where(above, np.where(taken, if_taken, if_passed), 0.0)
