"""Selections by themselves: the exponential mechanism of a cut, and the coins of a choice."""

from dataclasses import replace

import pytest
from audited_plans import target
from planted_bugs import PLANTED, PLANTED_IN_CHOICES

from dpal.audit.attack import QUICK, Effort, Target
from dpal.audit.selection_alone import ChoiceAttack, CutAttack

pytestmark = pytest.mark.exhaustive


def with_cut(epsilon: float) -> Target:
    """A plan whose cut is replaced; only that cut is attacked, and its own ε is the claim."""
    honest = target()
    cut = replace(honest.plan.selections[0], cut_epsilon=epsilon, wanted=50)
    return replace(honest, plan=replace(honest.plan, selections=(cut,)))


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_a_cut_gives_away_about_what_it_claims(epsilon: float) -> None:
    found = CutAttack().run(with_cut(epsilon), Effort(looks=20_000))
    assert not found.broken
    assert found.claimed_epsilon == epsilon
    assert 0.4 * epsilon < found.epsilon_bound < epsilon


def test_a_cut_of_twice_the_epsilon_is_found() -> None:
    found = CutAttack().run(with_cut(2.0), Effort(looks=20_000))
    assert found.epsilon_bound > 1.0


def test_the_planted_cut_is_found() -> None:
    plant, attacks = PLANTED["cut at the exact rank"]
    assert attacks == ("cut",)
    assert not CutAttack().run(target(), QUICK).broken
    with plant():
        assert CutAttack().run(target(), QUICK).broken


def test_choices_that_are_released() -> None:
    released = target(released=True)
    assert ChoiceAttack().applies(released)
    assert not CutAttack().applies(released)
    assert not ChoiceAttack().applies(target())
    honest = ChoiceAttack().run(released, QUICK)
    assert not honest.broken
    assert 0.3 * honest.claimed_epsilon < honest.epsilon_bound < honest.claimed_epsilon
    for plant, _ in PLANTED_IN_CHOICES.values():
        with plant():
            assert ChoiceAttack().run(released, QUICK).broken
