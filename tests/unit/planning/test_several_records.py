import pytest
from small_campaigns import linear_plan

from dpal.errors import InvalidArgument
from dpal.planning.several_records import epsilon_of_several, phased


def test_a_plan_as_one_record_is_what_was_certified() -> None:
    plan = linear_plan(selections="inside", accountant="pld")
    campaign = phased(plan.setting, plan.schedule)
    assert [phase.steps for phase in campaign.phases] == [phase.steps for phase in plan.phases]
    assert campaign.selections == tuple(selection.released for selection in plan.selections)
    assert epsilon_of_several(plan.setting, plan.schedule, 1).epsilon == pytest.approx(plan.epsilon, rel=1e-6)
    spent = [epsilon_of_several(plan.setting, plan.schedule, records).epsilon for records in (1, 2, 3)]
    assert spent == sorted(set(spent))


def test_more_records_than_there_are_and_plans_without_privacy_are_refused() -> None:
    plan = linear_plan()
    with pytest.raises(InvalidArgument, match="the records in the pool"):
        epsilon_of_several(plan.setting, plan.schedule, plan.setting.pool_size + 1)
    simulated = linear_plan(selection="none")
    with pytest.raises(InvalidArgument, match="nothing is promised"):
        epsilon_of_several(simulated.setting, simulated.schedule, 2)
