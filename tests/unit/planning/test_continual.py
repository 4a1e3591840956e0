"""Continual learning: before each shared phase, the new group alone catches up, and never beyond the target."""

import pytest
from small_settings import small_setting

from dpal.planning.continual import continual
from dpal.planning.naive_phases import NaivePhases
from dpal.planning.spending import spending

SETTING = small_setting()
SCHEDULE = continual(SETTING).schedule


def test_new_groups_train_alone_before_everyone_trains_together() -> None:
    rates = [phase.sampling_probabilities for phase in SCHEDULE.phases]
    # A batch of 100 from 300, and from 100: then everyone of the group takes part.
    assert rates == [(1 / 4,), (0, 1 / 3), (1 / 7,) * 2, (0, 0, 1), (1 / 8,) * 3]
    assert [phase.expected_batch_size for phase in SCHEDULE.phases] == pytest.approx([100] * 5)


def test_shared_phases_are_the_naive_ones() -> None:
    naive = NaivePhases.of(SETTING)
    assert tuple(phase.steps for phase in SCHEDULE.phases[::2]) == naive.steps
    assert {phase.noise_multiplier for phase in SCHEDULE.phases} == {naive.noise_multiplier}


def test_a_group_catches_up_as_far_as_the_target_allows_and_no_step_further() -> None:
    found = spending(SETTING, SCHEDULE, 5, SETTING.certifier)
    assert found.campaign <= 8
    # One step alone at a rate of 1/3 costs little, and one at a rate of 1 much more.
    assert found.groups[1] > 7.9 and found.groups[2] > 7


def test_without_queries_there_is_one_phase() -> None:
    schedule = continual(small_setting(query_sizes=())).schedule
    assert [phase.sampling_probabilities for phase in schedule.phases] == [(1 / 4,)]
