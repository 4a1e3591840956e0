import json
import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from settings import PAPER, PAPERS_SELECTION

import dpal
from dpal.errors import BudgetExceeded, InvalidArgument, NoPlan
from dpal.planning.objective import objective
from dpal.planning.plan import Schedule
from dpal.planning.planners import PLANNERS
from dpal.planning.request import PlanRequest
from dpal.planning.setting import default_delta, equal_queries
from dpal.selection import SELECTIONS

SMALL = {
    "target_epsilon": 8.0,
    "pool_size": 2_000,
    "initial_size": 400,
    "query_sizes": (300, 100),
    "batch_size": 100,
    "epochs": 10,
    "accountant": "rdp",
}


@pytest.fixture(scope="module")
def small() -> dpal.Plan:
    return dpal.plan(**SMALL)


def edited(plan: dpal.Plan, change) -> str:
    document = json.loads(plan.to_text())
    change(document)
    return json.dumps(document)


def test_a_plan_is_frozen(small: dpal.Plan) -> None:
    with pytest.raises(FrozenInstanceError):
        small.epsilon = 1.0


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("selection", SELECTIONS)
def test_every_plan_reads_back_as_itself(planner: str, selection: str) -> None:
    plan = dpal.plan(**SMALL, planner=planner, selection=selection)
    assert dpal.read_plan(plan.to_text()) == plan
    assert plan.epsilon <= 8


def test_the_document_has_what_it_promises(small: dpal.Plan) -> None:
    document = small.to_json()
    assert document["schema_version"] == 2
    for index, phase in enumerate(document["phases"]):
        assert len(phase["sampling_probabilities"]) == index + 1
        assert set(phase) == {"steps", "noise_multiplier", "expected_batch_size", "sampling_probabilities"}
    assert [selection["mechanism"] for selection in document["selections"]] == ["threshold", "threshold"]
    assert [group["size"] for group in document["groups"]] == [400, 300, 100]
    assert all(len(group["epsilon_by_phase"]) == 3 for group in document["groups"])


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["phases"][1].update(steps=document["phases"][1]["steps"] + 20),
        lambda document: document["phases"][0].update(noise_multiplier=0.9 * document["phases"][0]["noise_multiplier"]),
        lambda document: document.update(target_delta=1e-9),
        lambda document: document.update(target_epsilon=7.9),
    ],
)
def test_a_plan_edited_to_overspend_is_refused(small: dpal.Plan, change) -> None:
    with pytest.raises(BudgetExceeded, match=r"The plan spends ε = .*Nothing was charged"):
        dpal.read_plan(edited(small, change))


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.update(epsilon=4.0),
        lambda document: document["groups"][1]["epsilon_by_phase"].__setitem__(2, 1.0),
        lambda document: document["groups"][0].update(size=40_000),
        lambda document: document["never_selected"]["epsilon_by_phase"].pop(),
        lambda document: document.update(selection_is_private=False),
        lambda document: document.update(schema_version=99),
        lambda document: document.pop("phases"),
        lambda document: document["phases"].pop(),
        lambda document: document["selections"].pop(),
        lambda document: document["selections"][0].update(mechanism="random"),
        lambda document: document["phases"][0].update(expected_batch_size=1.0),
        lambda document: document["phases"][0].update(sampling_probabilities=[1.5]),
        lambda document: document["phases"][0].update(surprise=1),
        lambda document: document["setting"].update(surprise=1),
        lambda document: document["setting"].update(pool_size=-1),
        lambda document: document["setting"].update(free_query_sizes="x"),
        lambda document: document["selections"][0].update(probability_high=0.95),
        lambda document: document["selections"][0].update(choice_epsilon=1e-4),
        lambda document: document["selections"][0].update(fraction_above=True),
        lambda document: document["selections"][0].update(choice_epsilon="abc"),
        lambda document: document["groups"].append({}),
        lambda document: document.update(planner=7),
        lambda document: document.update(surprise=1),
        lambda document: document.update(schema_version=True),
        lambda document: document.update(accountant=["rdp"]),
        lambda document: document["phases"][0].update(steps=10**400),
    ],
)
def test_a_plan_with_false_or_missing_statements_is_refused(small: dpal.Plan, change) -> None:
    with pytest.raises(InvalidArgument):
        dpal.read_plan(edited(small, change))


def test_a_key_that_stands_twice_is_refused(small: dpal.Plan) -> None:
    with pytest.raises(InvalidArgument, match="appears twice"):
        dpal.read_plan(small.to_text().replace("{", '{"epsilon": 0.001, ', 1))


def test_a_plan_is_loaded_from_a_path_or_its_name(small: dpal.Plan, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(small.to_text(), encoding="utf-8")
    assert dpal.load_plan(file) == dpal.load_plan(str(file)) == small
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidArgument, match="UTF-8"):
        dpal.load_plan(file)


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "null", '{"schema_version": NaN}', "[" * 100_000, "1" * 5000])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        dpal.read_plan(text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 500}, "batch_size is 500, but must be at most the initial size of 400"),
        ({"query_sizes": (3_000,)}, "at most the pool size of 2,000"),
        ({"query_sizes": (0, 100)}, "a query size is 0"),
        ({"target_epsilon": 0}, "target_epsilon is 0"),
        ({"epochs": float("nan")}, "epochs is nan"),
        ({"planner": "magic"}, "planner is 'magic', but must be one of step-amplification"),
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


def test_no_plan_says_why_and_what_would_help() -> None:
    settings = {**PAPER["cifar10"], "query_sizes": (10_000,), "target_epsilon": 0.5, "accounting": "basic"}
    with pytest.raises(NoPlan) as caught:
        dpal.plan(selection_epsilon=0.499, selection="laplace", accountant="rdp", **settings)
    message = str(caught.value)
    assert "A selection ε of 0.499 is too much here" in message
    largest = float(re.search(r"the largest that works is ([\d.]+)\.", message)[1])
    assert 0 < largest < 0.499
    plan = dpal.plan(selection_epsilon=largest, selection="laplace", accountant="rdp", **settings)
    assert plan.epsilon <= 0.5


def test_a_group_without_budget_is_named() -> None:
    settings = {**SMALL, "target_epsilon": 4.0, "selection": "gaussian", "accounting": "renyi"}
    with pytest.raises(NoPlan, match=r"leaves group 2 too little training budget in phase 2: ε 3.4\d is due by then"):
        dpal.plan(selection_epsilon=3.99, **settings)


def test_selection_without_privacy_says_so() -> None:
    plan = dpal.plan(**SMALL, selection="none")
    assert not plan.selection_is_private
    assert plan.to_json()["selections"][0]["private"] is False


def test_laplace_costs_what_the_paper_says() -> None:
    plan = dpal.plan(target_epsilon=8, accountant="rdp", **PAPER["cifar10"], **PAPERS_SELECTION)
    assert plan.never_selected_epsilon_by_phase == pytest.approx((0, 0.5, 1, 1.5, 2))
    assert [
        group.epsilon_by_phase[group_index - 1] for group_index, group in enumerate(plan.groups) if group_index
    ] == (pytest.approx([0, 0.5, 1, 1.5]))


def test_one_phase_is_a_plan_too() -> None:
    plan = dpal.plan(target_epsilon=2, pool_size=1000, initial_size=500, query_sizes=(), accountant="rdp")
    assert len(plan.phases) == 1
    assert 1.99 < plan.epsilon <= 2


def test_the_aim_is_part_of_a_plan() -> None:
    plan = dpal.plan(**SMALL, selection_aim="overlap")
    assert dpal.read_plan(plan.to_text()) == plan
    with pytest.raises(InvalidArgument, match="selection_aim"):
        dpal.plan(**SMALL, selection_aim="fame")


def test_the_objective_grows_with_signal_and_falls_with_noise(small: dpal.Plan) -> None:
    quieter = dpal.plan(**{**SMALL, "target_epsilon": 12.0})
    sizes = small.setting.group_sizes

    def value(plan: dpal.Plan) -> float:
        return objective(Schedule(phases=plan.phases, selections=plan.selections), sizes)

    assert value(quieter) > value(small)


def test_defaults_fill_in() -> None:
    setting = PlanRequest(target_epsilon=8).resolve(50_000)
    assert setting.target_delta == 1e-5
    assert setting.query_sizes == (3_750,) * 4
    assert setting.free_query_sizes
    assert (setting.accounting, setting.batch_size, setting.selection_epsilon) == ("branch", 4000, 2.0)


def test_default_delta_is_below_one_over_the_pool() -> None:
    for pool, delta in ((1000, 1e-4), (500, 1e-3), (501, 1e-4), (50_000, 1e-5), (10**6, 1e-7)):
        assert default_delta(pool) == pytest.approx(delta)


def test_queries_share_the_labelling_budget() -> None:
    assert equal_queries(25, 10, 4) == (4, 4, 4, 3)
    assert equal_queries(10, 10, 0) == ()
    with pytest.raises(InvalidArgument, match="labelling_budget is 11"):
        equal_queries(11, 10, 4)
