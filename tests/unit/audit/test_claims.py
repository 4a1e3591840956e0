"""What is attacked is what is certified."""

import math

import pytest
from audited_plans import plan

from dpal.audit.attack import Effort, Target
from dpal.audit.audits import audit
from dpal.audit.claims import claim_of_plan, claim_of_selection, history_of
from dpal.errors import InvalidArgument
from dpal.planning.request import PlanRequest
from dpal.selection.cut import CutSelection


@pytest.mark.parametrize("released", [False, True])
def test_the_claim_of_a_plan_is_its_certified_epsilon(released: bool) -> None:
    made = plan(released=released)
    claim = claim_of_plan(made)
    assert claim.epsilon == made.epsilon
    # The curve goes through the pair that is stated, and falls.
    assert claim.curve(made.epsilon) <= 1.0001 * made.setting.target_delta
    curve = [claim.curve(epsilon) for epsilon in claim.epsilons]
    assert curve == sorted(curve, reverse=True)
    assert 0.1 < curve[0] < 1
    assert len(history_of(made).selections) == len(made.selections)


def test_the_claim_of_a_cut_is_pure() -> None:
    claim = claim_of_selection(CutSelection(query_size=100, unlabelled=1000, cut_epsilon=0.5, wanted=90), delta=1e-5)
    assert (claim.epsilon, claim.delta) == (0.5, 0.0)
    assert claim.curve(0.5) == pytest.approx(0.0, abs=1e-12)
    # The envelope of all exponential mechanisms with this ε (docs/maths/cut.md).
    assert claim.curve(0.0) == pytest.approx(math.tanh(0.5 / 4), rel=0.02)


@pytest.mark.parametrize("kind", ["gaussian", "sampled-gaussian"])
def test_a_selection_with_gaussian_noise_is_attacked_too(kind: str) -> None:
    """It has no ε at δ = 0: an audit of such a plan ended with an error."""
    request = PlanRequest(
        target_epsilon=8,
        initial_size=100,
        query_sizes=(60,),
        batch_size=50,
        epochs=2,
        selection=kind,
        selections="released",
        planner="step-amplification",
        accountant="rdp",
    )
    made = request.plan(2_000)
    claim = claim_of_selection(made.selections[0], delta=made.setting.target_delta)
    assert claim.delta == made.setting.target_delta and 0 < claim.epsilon <= made.epsilon
    assert claim.curve(claim.epsilon) <= 1.001 * claim.delta
    attacked = Target(plan=made, device="cpu")
    for finding in audit(attacked, Effort(canaries=100, looks=200), names=["choice", "campaign"]).findings:
        assert not finding.broken and finding.guesses > 0


def test_a_plan_that_promises_nothing_is_refused() -> None:
    simulated = PlanRequest(
        target_epsilon=3, initial_size=800, query_sizes=(600,), selections="released", selection="none"
    ).plan(5_000)
    with pytest.raises(InvalidArgument, match="promises nothing"):
        claim_of_plan(simulated)
