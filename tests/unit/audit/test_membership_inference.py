"""LiRA tells members from others where a model shows them, and nothing where it does not."""

import numpy as np
import pytest
from small_audits import hardly_any_noise, memorable, small_plan

from dpal.audit.attack import Effort, Target
from dpal.audit.membership_inference import (
    MarginModel,
    MembershipInference,
    area_under_curve,
    true_positive_rate,
)
from dpal.errors import InvalidArgument

EFFORT = Effort(shadow_models=6)
RECORDS, WIDTH = 240, 200


def simulated(models: int, shift: np.ndarray, *, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Margins that a record's own membership moves by its own shift."""
    generator = np.random.default_rng(0)
    members = generator.random((models, len(shift))) < 0.5
    places = np.linspace(-3, 3, len(shift))
    return places + members * shift + noise * generator.normal(size=members.shape), members


def areas(models: int, shift: np.ndarray) -> float:
    margins, members = simulated(models + 2, shift)
    evidence = MarginModel.of(margins[:models], members[:models]).evidence(margins[models:])
    return area_under_curve(evidence[members[models:]], evidence[~members[models:]])


def test_the_likelihood_ratio_is_the_true_one_with_many_shadow_models() -> None:
    shift = np.array([0.0, 0.5, 2.0, -1.0])
    margins, members = simulated(20_000, shift)
    model = MarginModel.of(margins, members)
    seen, places = np.array([[0.3, 1.0, -1.0, 2.0]]), np.linspace(-3, 3, 4)
    exact = ((seen - places) ** 2 - (seen - places - shift) ** 2) / 2
    assert model.evidence(seen) == pytest.approx(exact, abs=0.15)


def test_few_shadow_models_are_enough_where_all_records_move_alike() -> None:
    alike = np.full(2_000, 1.0)
    # The best there is: two Gaussians one deviation apart.
    assert areas(6, alike) > 0.70
    assert areas(6, np.zeros(2_000)) == pytest.approx(0.5, abs=0.05)
    # Where records differ much, each needs its own difference.
    mixed = np.where(np.arange(2_000) % 2, 4.0, 0.0)
    assert areas(40, mixed) > areas(6, mixed) > 0.72


def test_shadow_models_must_be_several_and_differ() -> None:
    with pytest.raises(InvalidArgument, match="shadow models"):
        MarginModel.of(np.zeros((1, 3)), np.zeros((1, 3), dtype=np.bool_))
    with pytest.raises(InvalidArgument, match="shadow models"):
        MarginModel.of(np.zeros((2, 3)), np.ones((2, 3), dtype=np.bool_))


def test_rates_and_areas_of_small_cases() -> None:
    absent = np.arange(1_000) / 1_000
    present = np.array([0.5, 0.9985, 0.9995, 2.0])
    # At 0.1% one of 1,000 may be above the threshold, and 0.999 is.
    assert true_positive_rate(present, absent, 0.001) == 0.75
    assert true_positive_rate(present, absent, 0) == 0.5
    assert true_positive_rate(present, absent, 1) == 1
    assert area_under_curve(np.array([1.0, 2.0]), np.array([0.0, 1.0])) == pytest.approx(0.875)


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_a_plan_as_it_is_stays_below_its_claim(epsilon: float) -> None:
    target = Target(plan=small_plan(epsilon, RECORDS), device="cpu")
    found = MembershipInference(stand_in=memorable(RECORDS, WIDTH)).run(target, EFFORT)
    assert found.epsilon_bound < found.claimed_epsilon and not found.broken
    assert found.runs == 6 and found.guesses == 2 * RECORDS
    assert "0.1% false positives" in found.note


def test_noise_that_is_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    hardly_any_noise(monkeypatch)
    target = Target(plan=small_plan(1.0, RECORDS), device="cpu")
    found = MembershipInference(stand_in=memorable(RECORDS, WIDTH)).run(target, EFFORT)
    assert found.epsilon_bound > 2 * found.claimed_epsilon and found.broken


def test_units_are_left_to_other_attacks() -> None:
    plan = small_plan(1.0, RECORDS)
    assert MembershipInference().applies(Target(plan=plan))
    assert not MembershipInference().applies(Target(plan=plan, rows_per_unit=3))
