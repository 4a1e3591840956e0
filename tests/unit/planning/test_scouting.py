import pytest
from settings import SMALL

import dpal
from dpal.planning.naive import no_al
from dpal.planning.objective import objective
from dpal.planning.request import PlanRequest
from dpal.planning.scouting import Scouting, scouting

LARGE = {"target_epsilon": 8, "target_delta": 1e-5, "initial_size": 10_000, "batch_size": 4_096, "accountant": "rdp"}


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


def test_while_scouting_everyone_trains_at_one_rate() -> None:
    plan = dpal.plan(pool_size=50_000, **LARGE, query_sizes=(5_000, 10_000), planner="scouting")
    rates = {rate for phase in plan.phases[:-1] for rate in phase.sampling_probabilities}
    assert len(rates) == 1


def test_a_larger_share_scouts_longer_and_leaves_less_for_the_end() -> None:
    setting = PlanRequest(**LARGE, query_sizes=(15_000,)).resolve(50_000)
    little, much = (Scouting(epsilon_share=share).schedule(setting) for share in (0.2, 0.7))
    assert little.phases[0].expected_batch_size < much.phases[0].expected_batch_size
    assert little.phases[1].noise_multiplier < much.phases[1].noise_multiplier


def test_it_says_what_it_expects() -> None:
    plan = dpal.plan(pool_size=50_000, **LARGE, query_sizes=(15_000,))
    assert plan.planner == "scouting" and "above training on as many random labels" in plan.remark
    setting = plan.setting
    proposal = scouting(setting)
    at_once = objective(no_al(setting).schedule, (setting.labelling_budget,))
    assert objective(proposal.schedule, setting.group_sizes) > at_once


def test_where_nearly_all_records_are_labelled_it_plans_random_labels() -> None:
    plan = dpal.plan(target_epsilon=8, pool_size=1_000, initial_size=400, query_sizes=[550], accountant="rdp")
    assert plan.selections == () and len(plan.phases) == 1
    assert plan.groups[0].size == 950
    assert plan.remark.startswith("Active learning is not expected to pay here")


def test_without_queries_there_is_nothing_to_scout_for() -> None:
    plan = dpal.plan(**{**SMALL, "query_sizes": ()}, planner="scouting")
    assert len(plan.phases) == 1 and plan.selections == ()
