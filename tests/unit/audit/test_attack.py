"""From evidence to a finding: with evidence whose law is known, and with equal evidence about everybody."""

import math

import numpy as np
import pytest

from dpal.audit.attack import QUICK, Attack, Effort, Finding, Target, finding, one_run_bound
from dpal.audit.bounds import gaussian_epsilon
from dpal.audit.claims import Claim
from dpal.audit.many_canaries import TrainingAttack
from dpal.errors import InvalidArgument
from dpal.privacy.campaign_history import CampaignHistory
from dpal.privacy.mechanisms import Gaussian

pytestmark = pytest.mark.exhaustive

DELTA = 1e-5


def gaussian_claim(mu: float) -> Claim:
    history = CampaignHistory(training=(((Gaussian(noise_multiplier=1 / mu), 1),),))
    return Claim.of_history(history, epsilon=gaussian_epsilon(mu, DELTA), delta=DELTA)


def found(mu: float, claimed: float, *, canaries: int = 20_000, seed: int = 1, one_run: bool = False) -> Finding:
    """What is found of evidence that is normal, with means `mu` apart."""
    rng = np.random.default_rng(seed)
    present, absent = rng.normal(mu, 1, canaries), rng.normal(0, 1, canaries)
    return finding(TrainingAttack(), gaussian_claim(claimed), present, absent, runs=1, seconds=0.0, one_run=one_run)


@pytest.mark.parametrize("mu", [0.3, 0.7, 1.6])
def test_bounds_are_below_the_truth_and_not_far(mu: float) -> None:
    true = gaussian_epsilon(mu, DELTA)
    for one_run in (False, True):
        result = found(mu, mu, one_run=one_run)
        assert 0.3 * true < result.epsilon_bound < true
        assert result.gaussian_bound is not None
        assert 0.75 * true < result.gaussian_bound < true
        assert not result.broken


def test_noise_that_is_a_quarter_too_small_is_impossible_under_the_claim() -> None:
    assert found(1.0, 0.75).broken
    assert not found(1.0, 1.0).broken


def test_a_true_claim_is_hardly_ever_called_broken() -> None:
    assert not any(found(0.7, 0.7, canaries=400, seed=seed).broken for seed in range(40))
    bounds = [found(0.7, 0.7, canaries=400, seed=seed).epsilon_bound for seed in range(40)]
    assert max(bounds) < gaussian_epsilon(0.7, DELTA)


def test_evidence_without_information_proves_nothing() -> None:
    result = found(0.0, 0.5)
    assert result.epsilon_bound == 0
    assert not result.broken
    zeros = np.zeros(100)
    assert one_run_bound(zeros, zeros, delta=DELTA, risk=0.05) == 0


def test_too_few_canaries_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="number of canaries"):
        finding(TrainingAttack(), gaussian_claim(1), np.zeros(1), np.zeros(5), runs=1, seconds=0)


def test_efforts_differ_by_seed_only() -> None:
    assert QUICK.with_seed(3).seed == 3
    assert QUICK.with_seed(0) == QUICK


class Blind(Attack):
    name, what = "blind", "Sees nothing."

    def run(self, target: Target, effort: Effort) -> Finding:
        raise NotImplementedError


CLAIM = Claim(epsilon=1.0, delta=1e-5, curve=lambda epsilon: 10 ** (-5 * epsilon**2))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 1.0])
def test_equal_evidence_about_everybody_proves_nothing(seed: int, share: float) -> None:
    # A mark that a canary has or not, whether it is there or not: a choice that was released and means nothing.
    generator = np.random.default_rng(seed)
    present, absent = ((generator.random(2_000) < share).astype(np.float64) for _ in range(2))
    assert one_run_bound(present, absent, delta=0, risk=1e-6) == 0
    assert one_run_bound(absent, present, delta=0, risk=1e-6) == 0


def test_clear_evidence_proves_much() -> None:
    generator = np.random.default_rng(0)
    present, absent = generator.normal(5, size=1_000), generator.normal(-5, size=1_000)
    assert one_run_bound(present, absent, delta=1e-5, risk=0.05) > 3


def test_canaries_that_share_weights_are_bounded_by_the_theorem_of_one_run_alone() -> None:
    generator = np.random.default_rng(0)
    present, absent = generator.normal(4, size=1_000), generator.normal(size=1_000)
    result = finding(Blind(), CLAIM, present, absent, runs=1, seconds=0, one_run=True, independent=False)
    assert result.epsilon_bound == one_run_bound(present, absent, delta=1e-5, risk=0.05)
    assert result.broken and result.gaussian_bound is None
    # What a mechanism with ε = 1 gives is not impossible under it.
    private = (generator.random(1_000) < rate for rate in (math.e / (1 + math.e), 1 / (1 + math.e)))
    there, gone = (marks + generator.normal(size=1_000) / 10 for marks in private)
    assert not finding(Blind(), CLAIM, there, gone, runs=1, seconds=0, one_run=True, independent=False).broken
    with pytest.raises(InvalidArgument, match="independent"):
        finding(Blind(), CLAIM, present, absent, runs=1, seconds=0, independent=False)
