"""Canaries in a pool: what they are made of, and what the final model says of them."""

import numpy as np
import pytest
from phases import seeded
from small_audits import hardly_any_noise, memorable, small_plan

from dpal.audit.attack import Effort, Target
from dpal.audit.input_canaries import InputCanaries, with_lone_pixels, with_wrong_classes

RECORDS, WIDTH = 400, 300
EFFORT = Effort(canaries=400)


def test_each_lone_pixel_is_one_canarys_alone() -> None:
    made = with_lone_pixels(30, seeded())
    rows = np.asarray(made.records.inputs)
    canaries, others = rows[made.is_canary], rows[~made.is_canary]
    assert canaries.shape == (30, rows.shape[1]) and len(others) > 1_000
    assert (np.count_nonzero(canaries, axis=1) == 1).all()
    # No other record has anything there.
    lit = canaries.argmax(axis=1)
    assert len(set(lit.tolist())) == 30 and (others[:, lit] == 0).all()
    assert np.linalg.norm(rows, axis=1) == pytest.approx(10, rel=1e-5)


def test_canaries_of_a_stand_in_have_wrong_classes_and_others_their_own() -> None:
    stand_in = memorable(RECORDS, WIDTH)
    made = with_wrong_classes(stand_in, 10_000, seeded())
    assert made.is_canary.sum() == RECORDS // 2
    wrong = made.records.labels != stand_in.labels
    assert (wrong == made.is_canary).all() and set(made.records.labels.tolist()) == {0, 1, 2}
    assert with_wrong_classes(stand_in, 25, seeded()).is_canary.sum() == 25


ATTACKS = [InputCanaries(), InputCanaries(stand_in=memorable(RECORDS, WIDTH))]


@pytest.mark.parametrize("attack", ATTACKS, ids=["lone pixels", "wrong classes"])
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_a_plan_as_it_is_stays_below_its_claim(attack: InputCanaries, epsilon: float) -> None:
    found = attack.run(Target(plan=small_plan(epsilon, RECORDS), device="cpu"), EFFORT)
    assert found.epsilon_bound < found.claimed_epsilon and not found.broken
    assert found.guesses >= EFFORT.canaries and f"{found.guesses:,} canaries" in found.note


@pytest.mark.parametrize("attack", ATTACKS, ids=["lone pixels", "wrong classes"])
def test_noise_that_is_left_out_is_found(attack: InputCanaries, monkeypatch: pytest.MonkeyPatch) -> None:
    hardly_any_noise(monkeypatch)
    found = attack.run(Target(plan=small_plan(1.0, RECORDS), device="cpu"), EFFORT)
    assert found.epsilon_bound > 2 * found.claimed_epsilon
    # So few wrong classes do not exclude chance to one in a million.
    assert found.broken == (attack.stand_in is None)


def test_units_are_left_to_other_attacks() -> None:
    plan = small_plan(1.0, RECORDS)
    assert InputCanaries().applies(Target(plan=plan))
    assert not InputCanaries().applies(Target(plan=plan, rows_per_unit=3))
