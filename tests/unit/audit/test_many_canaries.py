"""Honest training and campaigns stay within the claim, close to it; planted bugs do not."""

import pytest
from audited_plans import target
from planted_bugs import PLANTED, PLANTED_IN_UNITS

from dpal.audit.attack import QUICK, Effort
from dpal.audit.many_canaries import CampaignAttack, ReplayAttack, TrainingAttack, UnitAttack

pytestmark = pytest.mark.exhaustive

KINDS = {kind.name: kind for kind in (TrainingAttack, CampaignAttack, ReplayAttack)}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_honest_code_stays_within_the_claim(name: str, epsilon: float) -> None:
    found = KINDS[name]().run(target(epsilon), QUICK)
    assert not found.broken
    assert found.gaussian_bound is not None
    assert 0.1 * epsilon < found.epsilon_bound < found.claimed_epsilon
    assert found.gaussian_bound < found.claimed_epsilon


@pytest.mark.parametrize("bug", [bug for bug in PLANTED if set(KINDS) & set(PLANTED[bug][1])])
def test_planted_bugs_are_found(bug: str) -> None:
    plant, attacks = PLANTED[bug]
    for name in set(KINDS) & set(attacks):
        with plant():
            assert KINDS[name]().run(target(), QUICK).broken, name


def test_released_selections_and_training_together() -> None:
    found = CampaignAttack().run(target(released=True), QUICK)
    assert not found.broken
    assert 0.1 < found.epsilon_bound < found.claimed_epsilon


def test_whole_units() -> None:
    patients = target(unit="patient")
    assert not TrainingAttack().applies(patients)
    assert UnitAttack().applies(patients)
    found = UnitAttack().run(patients, QUICK)
    assert not found.broken
    assert 0.8 < found.epsilon_bound < found.claimed_epsilon
    for plant, _ in PLANTED_IN_UNITS.values():
        with plant():
            assert UnitAttack().run(patients, QUICK).broken


def test_the_same_seed_finds_the_same() -> None:
    first, second, other = (TrainingAttack().run(target(), Effort(canaries=500, seed=seed)) for seed in (1, 1, 2))
    assert first.curve == second.curve != other.curve
