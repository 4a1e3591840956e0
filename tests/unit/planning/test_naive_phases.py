"""The naive phases by hand, and noise with which the first group ends at its target."""

import pytest
from small_settings import small_setting

from dpal.planning.naive_phases import NaivePhases
from dpal.privacy.renyi import DEFAULT_ORDERS

SETTING = small_setting()


def test_rates_and_steps_by_hand() -> None:
    """Batches of 100 from 400, 700 and 800 records, 10 epochs each."""
    assert NaivePhases.naive_rates(SETTING) == (1 / 4, 1 / 7, 1 / 8)
    assert NaivePhases.naive_steps(SETTING) == (40, 70, 80)


def test_a_phase_has_at_least_one_step() -> None:
    assert NaivePhases.naive_steps(small_setting(epochs=0.01)) == (1, 1, 1)


def test_a_rate_is_never_above_one() -> None:
    assert NaivePhases.naive_rates(small_setting(batch_size=400))[0] == 1


def test_the_first_group_ends_just_under_its_target() -> None:
    phases = NaivePhases.of(SETTING)
    spent = SETTING.certifier.epsilon(phases.naive_history(3), SETTING.target_delta)
    assert 8 * (1 - 1e-6) <= spent <= 8
    due = phases.epsilon_by_phase()
    assert list(due) == sorted(set(due)) and due[-1] == 8
    assert due[0] == pytest.approx(SETTING.certifier.epsilon(phases.naive_history(1), SETTING.target_delta))


def test_more_noise_costs_less_and_changes_nothing_else() -> None:
    phases = NaivePhases.of(SETTING)
    louder = phases.with_noise(2 * phases.noise_multiplier)
    assert (louder.rates, louder.steps) == (phases.rates, phases.steps)
    assert louder.epsilon_by_phase()[0] < phases.epsilon_by_phase()[0]


def test_the_decisive_order_gives_the_groups_epsilon() -> None:
    phases = NaivePhases.of(SETTING)
    order = phases.decisive_order()
    assert order in DEFAULT_ORDERS
    only = SETTING.certifier.at_orders((order,)).epsilon(phases.naive_history(3), SETTING.target_delta)
    assert only == pytest.approx(8, rel=1e-6)
