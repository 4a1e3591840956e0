import re

import pytest
from settings import SMALL

import dpal
from dpal.errors import InvalidArgument
from dpal.planning.request import PlanRequest
from dpal.planning.setting import default_delta
from dpal.privacy.accountants import accountant_named
from dpal.privacy.calibration import noise_multiplier_for


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 500}, "batch_size is 500, but must be at most the initial size of 400"),
        ({"query_sizes": (3_000,)}, "at most the pool size of 2,000"),
        ({"query_sizes": (0, 100)}, "a query size is 0"),
        ({"target_epsilon": 0}, "target_epsilon is 0"),
        ({"epochs": float("nan")}, "epochs is nan"),
        ({"planner": "magic"}, "planner is 'magic', but must be one of scouting"),
        ({"selection": "magic"}, "selection is 'magic'"),
        ({"accounting": "magic"}, "accounting is 'magic'"),
        ({"selection_epsilon": 9}, "below the target ε of 8"),
        ({"selection": "laplace", "selection_epsilon": 0}, "selection_epsilon is 0"),
        ({"phases": 3}, "query_sizes is"),
        ({"selection": "gaussian", "accounting": "basic"}, "no pure ε"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(change: dict, message: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(message)):
        dpal.plan(**{**SMALL, **change})


def test_defaults_fill_in() -> None:
    setting = PlanRequest(target_epsilon=8).resolve(50_000)
    assert setting.target_delta == 1e-5
    assert (setting.promise, setting.selection) == ("inside", "cut")
    assert setting.query_sizes == (15_000,)
    assert setting.free_query_sizes
    assert (setting.accounting, setting.batch_size, setting.selection_epsilon) == ("branch", 4000, 0.8)


@pytest.mark.parametrize(("phases", "sizes"), [(None, (320, 480)), (3, (320, 240, 240)), (1, (800,))])
def test_a_labelling_budget_is_split_between_scout_and_queries(phases: int | None, sizes: tuple[int, ...]) -> None:
    setting = PlanRequest(target_epsilon=8, labelling_budget=800, phases=phases).resolve(5_216)
    assert setting.group_sizes == sizes


def test_released_selections_have_their_own_defaults() -> None:
    setting = PlanRequest(target_epsilon=8, selections="released").resolve(50_000)
    assert (setting.promise, setting.selection) == ("released", "threshold")
    assert setting.query_sizes == (3_750,) * 4
    assert setting.selection_epsilon == 2.0


@pytest.mark.parametrize(
    ("selection", "promise"),
    [("cut", "inside"), ("random", "inside"), ("threshold", "released"), ("laplace", "released")],
)
def test_the_promise_follows_from_the_selection(selection: str, promise: str) -> None:
    assert PlanRequest(target_epsilon=8, selection=selection).resolve(50_000).promise == promise


@pytest.mark.parametrize(
    ("selection", "promise"), [("cut", "released"), ("threshold", "inside"), ("laplace", "inside")]
)
def test_a_selection_that_does_not_serve_the_promise_is_refused(selection: str, promise: str) -> None:
    with pytest.raises(InvalidArgument, match=f"selection is '{selection}'"):
        PlanRequest(target_epsilon=8, selection=selection, selections=promise).resolve(50_000)


def test_the_aim_is_part_of_a_plan() -> None:
    plan = dpal.plan(**SMALL, selection="threshold", selection_aim="overlap")
    assert dpal.read_plan(plan.to_text()) == plan
    with pytest.raises(InvalidArgument, match="selection_aim"):
        dpal.plan(**SMALL, selection_aim="fame")


@pytest.mark.parametrize(("phases", "epochs"), [(1, 400.0), (2, 400 / 3.5), (5, 400 / 8.75)])
def test_a_head_on_an_encoder_trains_about_400_steps_in_however_many_phases(phases: int, epochs: float) -> None:
    """With 30 epochs in an only phase there were 30 steps, which cost five points on blood cells."""
    request = PlanRequest(target_epsilon=8, labelling_budget=2500, phases=phases, accountant="rdp").for_encoder(12_000)
    assert request.epochs == pytest.approx(epochs)
    assert 390 <= sum(phase.steps for phase in request.plan(12_000).phases) <= 410
    stated = PlanRequest(target_epsilon=8, labelling_budget=2500, phases=phases, epochs=7).for_encoder(12_000)
    assert stated.epochs == 7


@pytest.mark.parametrize(
    ("epsilon", "pool_size", "times"),
    [(8.0, 12_000, 5.0), (8.0, 500, 5.0), (8.0, 200, 3.0), (1.0, 1000, 3.0), (1.0, 200, 0)],
)
def test_the_noise_of_a_mean_follows_from_the_budget_and_the_pool(epsilon: float, pool_size: int, times: float) -> None:
    request = PlanRequest(target_epsilon=epsilon, labelling_budget=pool_size // 2, phases=1, accountant="rdp")
    filled = request.for_encoder(pool_size)
    alone = noise_multiplier_for(
        target_epsilon=epsilon,
        target_delta=default_delta(pool_size),
        phases=((1.0, 1),),
        accountant=accountant_named("rdp"),
    )
    assert filled.mean_noise_multiplier == pytest.approx(times * alone, abs=0.1)
    # The smaller an encoder's rows, the less the noise moves them.
    assert (request.for_encoder(pool_size, width=16).mean_noise_multiplier or 0) > 0
    assert filled.plan(pool_size).epsilon <= epsilon
