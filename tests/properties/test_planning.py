"""Random settings: always a certified plan or a clear refusal, never an overspend, never a hang."""

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpal
from dpal.errors import DpalError

pytestmark = pytest.mark.exhaustive

# Far above what a plan takes, far below what a person would call a hang.
MOST_SECONDS = {"rdp": 60, "pld": 200}


@st.composite
def campaigns(draw, *, most_phases: int = 12, largest_pool: float = 7.0) -> dict:
    pool = int(10 ** draw(st.floats(2.31, largest_pool)))
    initial = max(1, int(pool * 10 ** draw(st.floats(-2.0, -0.2))))
    phases = draw(st.integers(1, most_phases))
    room = pool - initial
    budget = min(pool, initial + max(phases - 1, int(room * draw(st.floats(0.01, 1.0))))) if phases > 1 else initial
    epsilon = 10 ** draw(st.floats(-1.0, 1.699))
    return {
        "target_epsilon": epsilon,
        "pool_size": pool,
        "initial_size": initial,
        "labelling_budget": budget,
        "phases": phases,
        "batch_size": max(1, int(initial * 10 ** draw(st.floats(-2.0, 0.0)))),
        "epochs": 10 ** draw(st.floats(-0.5, 2.0)),
        "selection": draw(st.sampled_from(["threshold", "laplace", "gaussian", "random", "none"])),
        "selection_epsilon": draw(st.one_of(st.none(), st.floats(0.01, 0.99).map(lambda share: share * epsilon))),
        "accounting": draw(st.sampled_from(["branch", "basic", "renyi"])),
        "planner": draw(
            st.sampled_from(
                ["step-amplification", "step-amplification", "naive", "noise-reduction", "continual", "no-al"]
            )
        ),
    }


def check(campaign: dict, accountant: str) -> None:
    start = time.monotonic()
    try:
        plan = dpal.plan(accountant=accountant, **campaign)
    except DpalError as refusal:
        # A refusal names a value and what would be allowed or what would help.
        assert (
            "must be" in str(refusal)
            or "would help" in str(refusal)
            or "that works is" in str(refusal)
            or "Use " in str(refusal)
        )
    else:
        assert plan.epsilon <= campaign["target_epsilon"]
        assert all(group.epsilon_by_phase[-1] <= campaign["target_epsilon"] for group in plan.groups)
        assert dpal.read_plan(plan.to_text()) == plan
        if plan.planner == "step-amplification" and not plan.remark:
            assert min(group.epsilon_by_phase[-1] for group in plan.groups) >= 0.995 * campaign["target_epsilon"]
    assert time.monotonic() - start < MOST_SECONDS[accountant]


@pytest.mark.parametrize("part", range(2))
@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_setting_with_rdp(part: int, data) -> None:
    check(data.draw(campaigns()), "rdp")


@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(campaign=campaigns(most_phases=4))
def test_any_setting_with_pld(campaign: dict) -> None:
    check(campaign, "pld")
