"""Among few records one more changes everything that depends on their number."""

import pytest
from audited_plans import target
from planted_bugs import PLANTED

from dpal.audit.attack import QUICK
from dpal.audit.lone_canary import LoneCanaryAttack

pytestmark = pytest.mark.exhaustive


def test_an_honest_step_stays_within_its_claim() -> None:
    for honest in (target(), target(unit="patient")):
        found = LoneCanaryAttack().run(honest, QUICK)
        assert not found.broken
        assert found.gaussian_bound is not None
        assert 0.3 * found.claimed_epsilon < found.gaussian_bound < found.claimed_epsilon


@pytest.mark.parametrize("bug", [bug for bug, (_, attacks) in PLANTED.items() if "lone-canary" in attacks])
def test_planted_bugs_are_found(bug: str) -> None:
    with PLANTED[bug][0]():
        assert LoneCanaryAttack().run(target(), QUICK).broken
