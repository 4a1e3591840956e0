"""The naive plan and the plan without active learning: one rate for everyone, and never above the target."""

import pytest
from small_settings import small_setting

from dpal.errors import NoPlan
from dpal.planning.naive import naive, no_al
from dpal.planning.naive_phases import NaivePhases
from dpal.planning.spending import spending


def spent(setting, schedule) -> float:
    found = spending(setting, schedule, len(schedule.phases), setting.certifier)
    return max(*found.groups, found.unselected, found.campaign)


def test_everyone_has_one_rate_in_each_phase_and_the_first_group_binds() -> None:
    setting = small_setting()
    schedule = naive(setting).schedule
    assert [set(phase.sampling_probabilities) for phase in schedule.phases] == [{1 / 4}, {1 / 7}, {1 / 8}]
    assert [phase.expected_batch_size for phase in schedule.phases] == pytest.approx([100, 100, 100])
    assert len({phase.noise_multiplier for phase in schedule.phases}) == 1
    found = spending(setting, schedule, 3, setting.certifier)
    assert found.groups[0] == max(found.groups) == pytest.approx(8, rel=1e-5)
    assert found.trained[2] < found.trained[1] < found.trained[0]


def test_noise_is_raised_where_selections_make_a_later_group_bind() -> None:
    paid = small_setting(selection="laplace", selection_epsilon=7.0, accounting="basic")
    schedule = naive(paid).schedule
    assert schedule.phases[0].noise_multiplier > NaivePhases.of(paid).noise_multiplier
    assert 8 * (1 - 1e-5) <= spent(paid, schedule) <= 8


@pytest.mark.parametrize(("selection", "accounting"), [("gaussian", "renyi"), ("laplace", "basic")])
def test_selections_that_leave_nothing_are_refused(selection: str, accounting: str) -> None:
    setting = small_setting(selection=selection, selection_epsilon=7.9999, accounting=accounting)
    with pytest.raises(NoPlan, match=r"No noise keeps ε at 8.*Use a smaller selection ε"):
        naive(setting)


def test_without_active_learning_everything_is_labelled_at_once() -> None:
    setting = small_setting()
    proposal = no_al(setting)
    (phase,) = proposal.schedule.phases
    assert proposal.setting == setting and proposal.schedule.selections == ()
    # As many steps as all naive phases together: 40 + 70 + 80; a batch of 100 from 800.
    assert (phase.steps, phase.sampling_probabilities) == (190, (1 / 8,))
    assert 8 * (1 - 1e-6) <= spent(setting, proposal.schedule) <= 8
    # One long phase needs less noise than three short ones with higher rates.
    assert phase.noise_multiplier < naive(setting).schedule.phases[0].noise_multiplier
