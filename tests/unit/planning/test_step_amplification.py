"""Step amplification: every group spends its whole budget, and none of them more."""

from dataclasses import replace

import numpy as np
import pytest
from small_settings import small_setting

from dpal.planning.naive_phases import NaivePhases
from dpal.planning.plan import Proposal
from dpal.planning.setting import Setting
from dpal.planning.spending import Spending, spending
from dpal.planning.step_amplification import _levels, noise_reduction, step_amplification

PAID = {"selection": "laplace", "selection_epsilon": 2.0}


def costs(proposal: Proposal) -> Spending:
    setting, schedule = proposal.setting, proposal.schedule
    return spending(setting, schedule, len(schedule.phases), setting.certifier)


@pytest.mark.parametrize(
    "setting",
    [small_setting(), small_setting(**PAID, accounting="basic"), small_setting(**PAID, accounting="renyi")],
    ids=["free", "basic", "renyi"],
)
@pytest.mark.parametrize("planner", [step_amplification, noise_reduction])
def test_every_group_ends_just_under_the_target(setting: Setting, planner) -> None:
    found = costs(planner(setting))
    assert max(*found.groups, found.campaign) <= 8
    assert found.campaign >= 8 * (1 - 1e-3)
    # With Rényi accounting the whole costs a little more than each of its groups; all of them give way alike.
    assert min(found.groups) >= max(found.groups) - 8e-3
    assert min(found.groups) >= (7.97 if setting.accounting == "renyi" else 7.99)


def test_later_phases_have_more_steps_at_lower_rates_than_the_naive_ones() -> None:
    setting = small_setting()
    naive, schedule = NaivePhases.of(setting), step_amplification(setting).schedule
    assert schedule.phases[0].steps == naive.steps[0]
    assert all(phase.steps > steps for phase, steps in zip(schedule.phases[1:], naive.steps[1:], strict=True))
    assert [phase.expected_batch_size for phase in schedule.phases] == pytest.approx([100] * 3, rel=2e-3)
    for phase in schedule.phases:
        # Who has just joined has the most budget left, and takes part most often.
        assert phase.sampling_probabilities[-1] == max(phase.sampling_probabilities)


def test_noise_reduction_keeps_the_steps_and_lowers_the_noise() -> None:
    setting = small_setting()
    naive, schedule = NaivePhases.of(setting), noise_reduction(setting).schedule
    assert tuple(phase.steps for phase in schedule.phases) == naive.steps
    noises = [phase.noise_multiplier for phase in schedule.phases]
    assert noises[0] == naive.noise_multiplier > max(noises[1:])


def test_without_queries_it_is_the_naive_plan() -> None:
    setting = small_setting(query_sizes=())
    (phase,) = step_amplification(setting).schedule.phases
    assert phase.noise_multiplier == NaivePhases.of(setting).noise_multiplier


def test_levels_under_branch_accounting_end_at_the_shared_epsilon() -> None:
    """Trained 3, 2 and 1 and selected for 0, 1 and 1.5: levels 3, 3 and 2.5. Outside the first group, all share 4."""
    found = Spending(groups=(3.0, 4.0, 4.0), trained=(3.0, 2.0, 1.0), unselected=4.0, campaign=4.0)
    assert _levels(found, np.array([0.0, 1.0, 1.5])).tolist() == pytest.approx([3.0, 4.0, 3.5])
    # Never below what training alone has cost.
    cheap = replace(found, unselected=1.0)
    assert _levels(cheap, np.array([0.0, 1.0, 1.5])).tolist() == pytest.approx([3.0, 2.0, 1.0])
