import pytest
from settings import SMALL

import dpal
from dpal.planning.objective import objective
from dpal.planning.plan import Schedule


@pytest.fixture(scope="module")
def small() -> dpal.Plan:
    return dpal.plan(**SMALL)


def test_the_objective_grows_with_signal_and_falls_with_noise(small: dpal.Plan) -> None:
    quieter = dpal.plan(**{**SMALL, "target_epsilon": 12.0})
    sizes = small.setting.group_sizes

    def value(plan: dpal.Plan) -> float:
        return objective(Schedule(phases=plan.phases, selections=plan.selections), sizes)

    assert value(quieter) > value(small)
