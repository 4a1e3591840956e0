"""What evidence becomes: bounds that know nothing of who was there, even where evidence is equal."""

import math

import numpy as np
import pytest

from dpal.audit.attack import Attack, Effort, Finding, Target, finding, one_run_bound
from dpal.audit.claims import Claim
from dpal.errors import InvalidArgument


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
