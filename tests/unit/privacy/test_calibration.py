import pytest
from histories import FIVE_PHASES, step

from dpal.errors import InvalidArgument, NoSolution
from dpal.privacy.accountants import ACCOUNTANTS, accountant_named
from dpal.privacy.calibration import noise_multiplier_for, sampling_probability_for, steps_for
from dpal.privacy.mechanisms import Laplace

BOTH = pytest.mark.parametrize("name", sorted(ACCOUNTANTS))


@BOTH
def test_noise_for_five_phases_lands_just_under_the_target(name: str) -> None:
    accountant = accountant_named(name)
    noise = noise_multiplier_for(target_epsilon=8, target_delta=1e-5, phases=FIVE_PHASES, accountant=accountant)
    spent = accountant.epsilon([(step(q, noise), steps) for q, steps in FIVE_PHASES], 1e-5)
    assert 8 * (1 - 1e-6) <= spent <= 8


@BOTH
def test_the_rate_that_a_history_leaves(name: str) -> None:
    accountant = accountant_named(name)
    before = [(Laplace(epsilon=0.5), 2), (step(0.3, 2.0), 40)]
    rate = sampling_probability_for(
        target_epsilon=8, target_delta=1e-5, noise_multiplier=2.0, steps=100, history=before, accountant=accountant
    )
    spent = accountant.epsilon([*before, (step(rate, 2.0), 100)], 1e-5)
    assert 8 * (1 - 1e-6) <= spent <= 8


@BOTH
def test_the_steps_that_fit_and_one_more(name: str) -> None:
    accountant = accountant_named(name)
    steps = steps_for(target_epsilon=2, target_delta=1e-5, mechanism=step(0.05, 1.2), accountant=accountant)
    assert accountant.epsilon([(step(0.05, 1.2), steps)], 1e-5) <= 2
    assert accountant.epsilon([(step(0.05, 1.2), steps + 1)], 1e-5) > 2


@BOTH
def test_a_rate_of_one_where_everything_fits(name: str) -> None:
    rate = sampling_probability_for(
        target_epsilon=50, target_delta=1e-5, noise_multiplier=10, steps=2, accountant=accountant_named(name)
    )
    assert rate == 1.0


@BOTH
def test_a_spent_budget_is_refused_with_its_number(name: str) -> None:
    accountant = accountant_named(name)
    before = [(Laplace(epsilon=3.0), 1)]
    for call in (
        lambda: noise_multiplier_for(
            target_epsilon=1, target_delta=1e-5, phases=[(0.1, 1)], history=before, accountant=accountant
        ),
        lambda: sampling_probability_for(
            target_epsilon=1, target_delta=1e-5, noise_multiplier=1, steps=1, history=before, accountant=accountant
        ),
        lambda: steps_for(
            target_epsilon=1, target_delta=1e-5, mechanism=step(0.1, 1), history=before, accountant=accountant
        ),
    ):
        with pytest.raises(NoSolution, match=r"The history alone has ε = (2\.9|3)"):
            call()


def test_phases_that_cannot_spend_are_refused() -> None:
    rdp = accountant_named("rdp")
    with pytest.raises(NoSolution, match="nothing to add noise to"):
        noise_multiplier_for(target_epsilon=1, target_delta=1e-5, phases=[(0.0, 10), (0.5, 0)], accountant=rdp)
    with pytest.raises(NoSolution, match="no useful limit"):
        steps_for(target_epsilon=1, target_delta=1e-5, mechanism=step(0, 1), accountant=rdp)


def test_a_rare_step_that_never_fits_allows_zero_steps() -> None:
    rdp = accountant_named("rdp")
    assert steps_for(target_epsilon=0.1, target_delta=1e-5, mechanism=step(0.9, 0.5), accountant=rdp) == 0


@pytest.mark.parametrize("target", [0, -1, float("nan"), float("inf")])
def test_a_bad_target_is_named(target: float) -> None:
    with pytest.raises(InvalidArgument, match="target_epsilon is"):
        noise_multiplier_for(
            target_epsilon=target, target_delta=1e-5, phases=[(0.1, 1)], accountant=accountant_named("rdp")
        )
