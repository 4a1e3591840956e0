"""The replay attack: who holds every model, every cut and every other record guesses whether one record was there.

The adversary replays the campaign from what was released. To make it as strong as can be, it is also told who else was
drawn in each step; the promise holds all the same. What it computes is the exact likelihood ratio, the best there is.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from histories import step
from scipy.stats import beta
from selections import seeded
from statistics_helper import FALSE_FAILURE

from dpal.privacy.accountants import PldAccountant
from dpal.privacy.campaign_accounting import campaign_delta
from dpal.privacy.campaign_history import CampaignHistory
from dpal.selection import CutSelection

TRIALS = 1200
PLANNED_BATCH = 4.0
GRID_STEPS = 255
EPSILONS = (0.0, 0.5, 1.0, 2.0)

_rng = np.random.default_rng(8)
FEATURES = _rng.normal(size=(14, 3))
LABELS = (_rng.uniform(size=14) < 0.5).astype(float)
# The record in question is number 0: far out, so that its gradient is as long as is allowed, and never certain.
FEATURES[0] = (30.0, -30.0, 30.0)
INITIAL = frozenset({1, 2, 3})


@dataclass(frozen=True, kw_only=True)
class Loop:
    """Three phases of private training with two cuts between them."""

    selection: CutSelection
    noise_multiplier: float = 2.0
    steps: int = 6
    rate: float = 0.6
    # The twin: ask for the top, and release exactly where it ends.
    exact_top: bool = False

    def history(self) -> CampaignHistory:
        each = (step(self.rate, self.noise_multiplier), self.steps)
        return CampaignHistory(training=((each,) * 3, (each,) * 2, (each,)), selections=(self.selection.released,) * 2)

    def heights(self, weights: np.ndarray) -> np.ndarray:
        """Scores of everyone in whole steps, rounded up: least confidence."""
        confidence = 1 / (1 + np.exp(-np.abs(np.clip(FEATURES @ weights, -30, 30))))
        scores = 2 * (1 - confidence)
        scores[0] = 1.0
        return np.ceil(scores * GRID_STEPS)

    def cut(self, heights: np.ndarray, randomness) -> float:
        if self.exact_top:
            return float(np.sort(heights)[-self.selection.wanted])
        # In the middle of a step, so that rounding gives the step itself.
        chosen = self.selection.choose(np.maximum(heights - 0.5, 0) / GRID_STEPS, highest=1.0, randomness=randomness)
        assert chosen.threshold is not None
        return float(round(chosen.threshold * GRID_STEPS))

    def log_probability(self, cut: float, heights: np.ndarray) -> float:
        """Of this cut, for these records."""
        if self.exact_top:
            return 0.0 if cut == np.sort(heights)[-self.selection.wanted] else -math.inf
        candidates = np.arange(1, GRID_STEPS + 2)
        errors = np.abs((heights[:, None] >= candidates).sum(axis=0) - self.selection.wanted)
        weights = -self.selection.cut_epsilon / 2 * errors
        return float(weights[int(cut) - 1] - np.log(np.exp(weights).sum()))


def clipped_gradients(weights: np.ndarray) -> np.ndarray:
    predicted = 1 / (1 + np.exp(-np.clip(FEATURES @ weights, -30, 30)))
    gradients = (predicted - LABELS)[:, None] * FEATURES
    # The record itself always has a gradient of norm 1, the worst there is.
    gradients[0] = FEATURES[0]
    return gradients / np.maximum(1.0, np.linalg.norm(gradients, axis=1, keepdims=True))


def attack(loop: Loop, is_there: bool, seed: int) -> float:
    """One campaign, and the log likelihood ratio of "it was there" that the adversary computes from its releases."""
    rng, randomness = np.random.default_rng([seed, is_there]), seeded(2 * seed + is_there)
    weights, members, joined, evidence = np.zeros(3), set(INITIAL), False, 0.0
    for phase in range(3):
        if phase > 0:
            heights = loop.heights(weights)
            others = [record for record in range(1, len(FEATURES)) if record not in members]
            # Blanks, which no rank counts, so that there is always a top.
            blank = np.append(heights[others], np.zeros(loop.selection.wanted))
            record = blank if joined else np.append(blank, heights[0])
            released = loop.cut(record if is_there else blank, randomness)
            evidence += difference(loop.log_probability(released, record), loop.log_probability(released, blank))
            members |= {record for record in others if heights[record] >= released}
            joined = joined or bool(heights[0] >= released)
        for _ in range(loop.steps):
            gradients = clipped_gradients(weights)
            drawn = [record for record in sorted(members) if rng.random() < loop.rate]
            known = gradients[drawn].sum(axis=0)
            own = gradients[0] if is_there and joined and rng.random() < loop.rate else 0.0
            noisy = known + own + rng.normal(0, loop.noise_multiplier, 3)
            if joined:
                left = noisy - known
                ratio = math.exp(
                    (2 * left @ gradients[0] - gradients[0] @ gradients[0]) / (2 * loop.noise_multiplier**2)
                )
                evidence += math.log(1 - loop.rate + loop.rate * ratio)
            weights = weights - 0.5 * noisy / PLANNED_BATCH
    return evidence


def difference(first: float, second: float) -> float:
    if first == second == -math.inf:
        return 0.0
    return first - second


def at_least(successes: int, trials: int) -> float:
    """A bound that the true rate is below with a probability of at most FALSE_FAILURE (Clopper and Pearson)."""
    return float(beta.ppf(FALSE_FAILURE / 20, successes, trials - successes + 1)) if successes else 0.0


def at_most(successes: int, trials: int) -> float:
    return 1 - at_least(trials - successes, trials)


def beyond(evidence: tuple[np.ndarray, np.ndarray], allowed: Callable[[float], float]) -> bool:
    """Whether some guess "it was there", or "it was not", succeeds more often than (ε, δ) allows for certain."""
    there, away = evidence
    for epsilon in EPSILONS:
        for first, second in ((there > epsilon, away > epsilon), (away < -epsilon, there < -epsilon)):
            right, wrong = int(first.sum()), int(second.sum())
            limit = math.exp(epsilon) * at_most(wrong, len(second)) + allowed(epsilon)
            if at_least(right, len(first)) > limit:
                return True
    return False


def replayed(loop: Loop) -> tuple[np.ndarray, np.ndarray]:
    there, away = (np.array([attack(loop, is_there, seed) for seed in range(TRIALS)]) for is_there in (True, False))
    return there, away


def success(evidence: tuple[np.ndarray, np.ndarray]) -> float:
    """How often a guess is right when both cases are equally likely."""
    there, away = evidence
    return float(((there > 0).mean() + (there == 0).mean() / 2 + (away < 0).mean() + (away == 0).mean() / 2) / 2)


@pytest.fixture(scope="module")
def loop() -> Loop:
    selection = CutSelection(
        query_size=4, unlabelled=11, cut_epsilon=1.0, wanted=3, grid_steps=GRID_STEPS, coin_levels=1
    )
    return Loop(selection=selection)


def certified_joiner(loop: Loop) -> Callable[[float], float]:
    """What is certified for records outside the initial set, which is smaller than for everyone."""
    whole = loop.history()
    history = CampaignHistory(training=((), *whole.training[1:]), selections=whole.selections)
    return lambda epsilon: campaign_delta(history, epsilon=epsilon, accounting="branch", accountant=PldAccountant())


def test_the_replay_succeeds_no_more_often_than_the_promise_allows(loop: Loop) -> None:
    joiner = certified_joiner(loop)
    evidence = replayed(loop)
    assert not beyond(evidence, joiner)
    limit = (1 + joiner(0.0)) / 2
    assert at_least(round(success(evidence) * 2 * TRIALS), 2 * TRIALS) <= limit
    # It is not a weak attack: it gets most of what is allowed above guessing.
    assert success(evidence) - 0.5 > 0.8 * (limit - 0.5)


def test_noise_that_is_too_small_is_noticed(loop: Loop) -> None:
    # The twins: half of the noise that was certified, or a cut of eight times the ε.
    careless = replace(loop, noise_multiplier=loop.noise_multiplier / 2)
    assert beyond(replayed(careless), certified_joiner(loop))
    sharp = replace(loop, selection=replace(loop.selection, cut_epsilon=8.0))
    assert beyond(replayed(sharp), certified_joiner(loop))


def test_the_exact_top_without_a_promise_gives_the_record_away(loop: Loop) -> None:
    evidence = replayed(replace(loop, exact_top=True))
    assert success(evidence) > 0.98
    assert beyond(evidence, certified_joiner(loop))
