"""Scouting: short phases that share a part of the first group's budget, then one long phase on everything."""

import pytest
from small_settings import small_setting

import dpal
from dpal.planning.naive import no_al
from dpal.planning.naive_phases import NaivePhases
from dpal.planning.objective import objective
from dpal.planning.request import PlanRequest
from dpal.planning.scouting import Scouting, scouting
from dpal.planning.setting import Setting
from dpal.planning.spending import spending

INSIDE = {"selections": "inside", "selection": "cut"}
LARGE = {"target_epsilon": 8, "target_delta": 1e-5, "initial_size": 10_000, "batch_size": 4_096, "accountant": "rdp"}


def epsilons(setting: Setting, phases_done: int, plan: Scouting) -> tuple[float, ...]:
    return spending(setting, plan.schedule(setting), phases_done, setting.certifier).trained


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_scouting_spends_its_share_and_the_rest_is_for_the_long_phase(share: float) -> None:
    setting, plan = small_setting(**INSIDE), Scouting(epsilon_share=share)
    scouted = epsilons(setting, 2, plan)[0]
    # Where a batch would be larger than asked for, it spends less.
    assert scouted <= share * 8 * (1 + 1e-6)
    final = spending(setting, plan.schedule(setting), 3, setting.certifier)
    assert max(*final.groups, final.campaign) <= 8
    assert final.trained[0] > 7.9


def test_phases_have_the_steps_of_training_at_once() -> None:
    setting = small_setting(**INSIDE)
    schedule = Scouting(steps_share=0.2).schedule(setting)
    total = sum(NaivePhases.naive_steps(setting))
    assert [phase.steps for phase in schedule.phases] == [19, 19, total - 38]
    assert [len(phase.sampling_probabilities) for phase in schedule.phases] == [1, 2, 3]
    # While scouting, everyone takes part at one rate.
    assert all(len(set(phase.sampling_probabilities)) == 1 for phase in schedule.phases[:2])
    assert schedule.phases[0].expected_batch_size <= setting.batch_size * (1 + 1e-9)
    assert schedule.phases[-1].expected_batch_size == pytest.approx(setting.batch_size, rel=2e-3)


def test_without_queries_there_is_nothing_to_scout_for() -> None:
    setting = small_setting(**INSIDE, query_sizes=())
    assert scouting(setting) == no_al(setting)


@pytest.mark.parametrize(("query_sizes", "pays"), [((300, 100), True), ((1500,), False)])
def test_where_nearly_everyone_is_labelled_scouting_does_not_pay(query_sizes: tuple[int, ...], pays: bool) -> None:
    setting = small_setting(**INSIDE, query_sizes=query_sizes)
    scouted, at_once = Scouting().schedule(setting), no_al(setting).schedule
    better = objective(scouted, setting.group_sizes) > objective(at_once, (setting.labelling_budget,))
    proposal = scouting(setting)
    assert better is pays
    assert proposal.schedule == (scouted if pays else at_once)
    assert ("not expected to pay" in proposal.remark) is not pays


@pytest.mark.parametrize("queries", [(15_000,), (5_000, 10_000), (5_000, 5_000, 5_000)])
def test_as_many_steps_as_training_at_once_and_every_group_spends_its_budget(queries: tuple[int, ...]) -> None:
    plan = dpal.plan(pool_size=50_000, **LARGE, query_sizes=queries, planner="scouting")
    setting = plan.setting
    at_once = no_al(setting).schedule.phases[0].steps
    assert sum(phase.steps for phase in plan.phases) == at_once
    assert [len(phase.sampling_probabilities) for phase in plan.phases] == list(range(1, len(queries) + 2))
    for group in plan.groups:
        assert 0.998 * 8 <= group.epsilon_by_phase[-1] <= 8
    # The last phase is the long one, and scouting costs the initial set about its share.
    assert plan.phases[-1].steps > 0.85 * at_once
    assert plan.groups[0].epsilon_by_phase[len(queries) - 1] == pytest.approx(4, rel=0.01)


def test_a_larger_share_scouts_longer_and_leaves_less_for_the_end() -> None:
    setting = PlanRequest(**LARGE, query_sizes=(15_000,)).resolve(50_000)
    little, much = (Scouting(epsilon_share=share).schedule(setting) for share in (0.2, 0.7))
    assert little.phases[0].expected_batch_size < much.phases[0].expected_batch_size
    assert little.phases[1].noise_multiplier < much.phases[1].noise_multiplier
