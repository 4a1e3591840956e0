"""What every attack is, and what it finds."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from dpal.audit.bounds import (
    Guesses,
    contradicts,
    epsilon_from_rates,
    epsilon_of_one_run,
    gaussian_epsilon,
    gaussian_mu_from_rates,
)
from dpal.audit.claims import Claim
from dpal.audit.results import FALSE_ALARM, RISK, Finding
from dpal.errors import InvalidArgument
from dpal.planning.plan import Plan
from dpal.randomness import SeededRandomness
from dpal.training.learner import device_for
from dpal.training.settings import ComputeSettings

# The shares of all canaries that a one-run audit guesses about; each pays its part of the risk.
_GUESSED = (0.002, 0.01, 0.05, 0.2, 1.0)
_THRESHOLDS = 200
_MANY = 4_000
# Multiples of the stated ε at which one run is held against a claim's curve.
_ABOVE = (1.25, 1.5, 2.0, 3.0)

Evidence = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is attacked: a plan, and the settings with which it is carried out. No record of anybody."""

    plan: Plan
    max_grad_norm: float = 1.0
    engine: str = "auto"
    precision: str = "float32"
    device: str = "auto"
    # Rows of a unit; 1 where the unit is a record.
    rows_per_unit: int = 1

    @property
    def torch_device(self) -> torch.device:
        """Where the attacked training runs."""
        return device_for(ComputeSettings(device=self.device))


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much an attack may do."""

    # Canaries in one run, repetitions of single releases, and models in a membership inference.
    canaries: int = 60_000
    looks: int = 20_000
    shadow_models: int = 16
    # Bounds are random: two audits with the same seed find the same.
    seed: int = 0

    def with_seed(self, seed: int) -> "Effort":
        """The same effort with other chance."""
        return replace(self, seed=seed)


QUICK = Effort(canaries=8_000, looks=4_000, shadow_models=8)
FULL = Effort(canaries=200_000, looks=20_000, shadow_models=24)


class Attack(ABC):
    """One way to break a promise. A kind defines `name`, `what`, `applies` and `run`."""

    name: ClassVar[str]
    # One sentence for people: who the adversary is, and what they see.
    what: ClassVar[str]

    def applies(self, target: Target) -> bool:
        """Whether there is something to attack."""
        del target
        return True

    @abstractmethod
    def run(self, target: Target, effort: Effort) -> Finding:
        """Attack the plan with dpal's own code and made-up records."""


def randomness_of(effort: Effort, *, stream: int) -> SeededRandomness:
    """Repeatable randomness: there is nothing private in an attack."""
    return SeededRandomness(seed=1_000_003 * effort.seed + stream, nothing_is_private=True)


def finding(
    attack: Attack,
    claim: Claim,
    present: Evidence,
    absent: Evidence,
    *,
    runs: int,
    seconds: float,
    one_run: bool = False,
    independent: bool = True,
    gaussian: bool = True,
    is_about_plan: bool = True,
    note: str = "",
) -> Finding:
    """What evidence about canaries that were there, and about others that were not, says of a claim.

    Thresholds are learnt on a part of the canaries and tried on the others. `one_run`: the canaries shared one run, in
    which each was there by a fair coin of its own, so that its bound needs no independence between them. Without
    `independent`, as where canaries move the same weights, that bound is the only one: intervals for rates need it.
    """
    if min(len(present), len(absent)) < 2:
        raise InvalidArgument("the number of canaries", min(len(present), len(absent)), "at least 2 of each kind")
    if not independent:
        if not one_run:
            raise InvalidArgument("independent", False, "True, unless all canaries shared one run (`one_run`)")
        return Finding(
            attack=attack.name,
            what=attack.what,
            claimed_epsilon=claim.epsilon,
            delta=claim.delta,
            epsilon_bound=one_run_bound(present, absent, delta=claim.delta, risk=RISK),
            broken=_broken_in_one_run(claim, present, absent),
            is_about_plan=is_about_plan,
            guesses=len(present) + len(absent),
            runs=runs,
            seconds=seconds,
            note=note,
            curve=_curve(present, absent),
        )
    halves = [_to_learn_and_to_try(side) for side in (present, absent)]
    learn, trial = ((halves[0][index], halves[1][index]) for index in (0, 1))
    at_epsilon, at_mu = _best_thresholds(*learn, claim.delta)
    for_epsilon, for_mu = _guesses(*trial, at_epsilon), _guesses(*trial, at_mu)
    bound = epsilon_from_rates(for_epsilon, delta=claim.delta, risk=RISK / 2 if one_run else RISK)
    if one_run:
        bound = max(bound, one_run_bound(present, absent, delta=claim.delta, risk=RISK / 2))
    mu = gaussian_mu_from_rates(for_mu, risk=RISK) if gaussian else None
    broken = any(
        contradicts(guesses, claim.curve, claim.epsilons, risk=FALSE_ALARM / 2) for guesses in (for_epsilon, for_mu)
    )
    return Finding(
        attack=attack.name,
        what=attack.what,
        claimed_epsilon=claim.epsilon,
        delta=claim.delta,
        epsilon_bound=bound,
        gaussian_bound=None if mu is None else gaussian_epsilon(mu, claim.delta) if claim.delta > 0 else None,
        broken=broken,
        is_about_plan=is_about_plan,
        guesses=len(present) + len(absent),
        runs=runs,
        seconds=seconds,
        note=note,
        curve=_curve(present, absent),
    )


def _broken_in_one_run(claim: Claim, present: Evidence, absent: Evidence) -> bool:
    """Whether one run is impossible under the claim.

    The theorem's chance is never far below the number of canaries times δ, so ε is tried where δ is as small as it must
    be, above the one that is stated.
    """
    tried = [claim.epsilon, *(times * claim.epsilon for times in _ABOVE)]
    # The curve is computed only where some evidence could contradict it.
    without_delta, risk = one_run_bound(present, absent, delta=0.0, risk=FALSE_ALARM / len(tried)), FALSE_ALARM
    return any(
        one_run_bound(present, absent, delta=claim.curve(epsilon), risk=risk / len(tried)) > epsilon
        for epsilon in tried
        if without_delta > epsilon
    )


def one_run_bound(present: Evidence, absent: Evidence, *, delta: float, risk: float) -> float:
    """The bound of one run, by guesses about the canaries with the strongest evidence in both directions."""
    evidence = np.concatenate([present, absent])
    is_present = np.arange(len(evidence)) < len(present)
    middle = np.median(evidence)
    # Where evidence is equal, by chance: by position, canaries that are there would come first, and count as right.
    shuffled = np.random.default_rng(len(evidence)).permutation(len(evidence))
    order = shuffled[np.argsort(-np.abs(evidence - middle)[shuffled], kind="stable")]
    right = (evidence > middle) == is_present
    best = 0.0
    for share in _GUESSED:
        guessed = max(1, round(share * len(evidence)))
        correct = int(right[order[:guessed]].sum())
        bound = epsilon_of_one_run(correct, guessed, len(evidence), delta=delta, risk=risk / len(_GUESSED))
        best = max(best, bound)
    return best


def _to_learn_and_to_try(evidence: Evidence) -> tuple[Evidence, Evidence]:
    """Half of few canaries, and a quarter of many, to learn a threshold from."""
    every = 2 if len(evidence) < _MANY else 4
    is_to_learn = np.arange(len(evidence)) % every == 0
    return evidence[is_to_learn], evidence[~is_to_learn]


def _guesses(present: Evidence, absent: Evidence, threshold: float) -> Guesses:
    return Guesses(
        right=int((present > threshold).sum()),
        present=len(present),
        wrong=int((absent > threshold).sum()),
        absent=len(absent),
    )


def _best_thresholds(present: Evidence, absent: Evidence, delta: float) -> tuple[float, float]:
    """The thresholds with the largest bounds, for ε and for μ."""
    together = np.concatenate([present, absent])
    inner = np.quantile(together, np.linspace(0.01, 0.99, _THRESHOLDS))
    # Far tails decide at large ε.
    tails = np.quantile(together, np.concatenate([ends := np.geomspace(2e-5, 1e-2, 25), 1 - ends]))
    candidates = np.unique(np.concatenate([inner, tails]))
    every = [_guesses(present, absent, float(at)) for at in candidates]
    by_epsilon = [epsilon_from_rates(each, delta=delta, risk=RISK) for each in every]
    by_mu = [gaussian_mu_from_rates(each, risk=RISK) for each in every]
    return float(candidates[int(np.argmax(by_epsilon))]), float(candidates[int(np.argmax(by_mu))])


def _curve(present: Evidence, absent: Evidence) -> tuple[tuple[float, float], ...]:
    points = np.quantile(np.concatenate([present, absent]), np.linspace(0, 1, 101))
    every = [_guesses(present, absent, float(at)) for at in points]
    return tuple(sorted({(each.false_positive_rate, each.true_positive_rate) for each in every} | {(1.0, 1.0)}))
