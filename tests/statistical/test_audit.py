"""Every attack of `dpal audit --quick`, on plans of three kinds: none gets beyond its claim, though they try."""

from typing import Any

import pytest
from audited_plans import target

from dpal.audit.attack import QUICK
from dpal.audit.audits import audit

pytestmark = pytest.mark.exhaustive

PLANS: dict[str, dict[str, Any]] = {
    "a cut at ε = 1": {"epsilon": 1.0},
    "patients at ε = 3": {"unit": "patient"},
    "threshold sampling, released, at ε = 3": {"released": True},
}


@pytest.mark.parametrize("plan", PLANS)
def test_no_attack_gets_beyond_its_claim(plan: str) -> None:
    result = audit(target(**PLANS[plan]), QUICK)
    assert not result.is_broken, result.verdict
    assert all(finding.epsilon_bound < finding.claimed_epsilon for finding in result.findings)
    assert result.strongest is not None and result.strongest.epsilon_bound > 0.3 * result.claimed_epsilon
