import re
from dataclasses import replace

import pytest
from settings import PAPER, SMALL

import dpal
from dpal.errors import InvalidArgument, NoPlan
from dpal.planning.naive import naive
from dpal.planning.plan import Proposal
from dpal.planning.planners import PLANNERS
from dpal.planning.setting import Setting
from dpal.selection import SELECTIONS


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("selection", SELECTIONS)
def test_every_plan_reads_back_as_itself(planner: str, selection: str) -> None:
    plan = dpal.plan(**SMALL, planner=planner, selection=selection)
    assert dpal.read_plan(plan.to_text()) == plan
    assert plan.epsilon <= 8


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


def test_one_phase_is_a_plan_too() -> None:
    plan = dpal.plan(target_epsilon=2, pool_size=1000, initial_size=500, query_sizes=(), accountant="rdp")
    assert len(plan.phases) == 1
    assert 1.99 < plan.epsilon <= 2


def test_selection_without_privacy_says_so() -> None:
    plan = dpal.plan(**SMALL, selection="none")
    assert not plan.selection_is_private
    assert plan.to_json()["selections"][0]["private"] is False


def greedy(setting: Setting) -> Proposal:
    return naive(replace(setting, target_epsilon=50.0, target_delta=0.1))


def thoughtless(setting: Setting) -> str:
    return "a plan"


@pytest.mark.parametrize(
    ("planner", "message"), [(greedy, "target_epsilon in the proposal"), (thoughtless, "a Proposal")]
)
def test_a_planner_of_ones_own_cannot_change_the_promise(planner, message: str, monkeypatch) -> None:
    monkeypatch.setitem(PLANNERS, "own", planner)
    with pytest.raises(InvalidArgument, match=message):
        dpal.plan(**SMALL, planner="own")
