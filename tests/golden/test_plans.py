"""Plans for the paper's settings, their ε recomputed by Opacus and dp-accounting from the plan's numbers alone."""

import math
import re
import warnings
from functools import cache
from itertools import product

import pytest
from settings import PAPER, PAPERS_SELECTION

import dpal
from dpal.planning.objective import objective
from dpal.planning.plan import Schedule
from dpal.planning.planners import PLANNERS

dp_accounting = pytest.importorskip("dp_accounting", reason="needs dp-accounting (pip install dpal[peers])")
opacus_accountants = pytest.importorskip("opacus.accountants", reason="needs Opacus (pip install dpal[peers])")

ON_TARGET = ("naive", "step-amplification", "noise-reduction")


@cache
def plan_of(setting: str, planner: str, accountant: str) -> dpal.Plan:
    return dpal.plan(target_epsilon=8, planner=planner, accountant=accountant, **PAPER[setting], **PAPERS_SELECTION)


def groups_of(document: dict) -> list[tuple[list[tuple[float, float, int]], float]]:
    """From the document alone: each group's training history (rate, noise, steps) and its selections' pure ε."""
    found = []
    for group in range(len(document["groups"])):
        history = [
            (phase["sampling_probabilities"][group], phase["noise_multiplier"], phase["steps"])
            for phase in document["phases"]
            if group < len(phase["sampling_probabilities"])
        ]
        found.append((history, sum(selection["epsilon"] for selection in document["selections"][:group])))
    return found


def opacus_epsilon(history: list[tuple[float, float, int]], delta: float) -> float:
    accountant = opacus_accountants.RDPAccountant()
    accountant.history = [(noise, rate, steps) for rate, noise, steps in history if rate > 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return accountant.get_epsilon(delta)


def dp_accounting_pld(history: list[tuple[float, float, int]]):
    accountant = dp_accounting.pld.PLDAccountant()
    for rate, noise, steps in history:
        event = dp_accounting.GaussianDpEvent(noise)
        accountant.compose(dp_accounting.PoissonSampledDpEvent(rate, event) if rate < 1 else event, steps)
    return accountant


@pytest.mark.parametrize(("setting", "planner"), list(product(PAPER, PLANNERS)))
def test_opacus_finds_every_group_within_the_budget(setting: str, planner: str) -> None:
    document = plan_of(setting, planner, "rdp").to_json()
    for history, selected in groups_of(document):
        assert opacus_epsilon(history, document["target_delta"]) + selected <= 8
    assert sum(selection["epsilon"] for selection in document["selections"]) <= 8


@pytest.mark.parametrize(("setting", "planner"), list(product(PAPER, PLANNERS)))
def test_dp_accounting_finds_every_group_within_the_budget(setting: str, planner: str) -> None:
    document = plan_of(setting, planner, "pld").to_json()
    for history, selected in groups_of(document):
        assert dp_accounting_pld(history).get_epsilon(document["target_delta"]) + selected <= 8


@pytest.mark.parametrize(("setting", "planner", "accountant"), list(product(PAPER, ON_TARGET, ("rdp", "pld"))))
def test_the_expected_batch_is_on_its_target(setting: str, planner: str, accountant: str) -> None:
    for phase in plan_of(setting, planner, accountant).phases:
        assert phase.expected_batch_size == pytest.approx(PAPER[setting]["batch_size"], rel=5e-3)


@pytest.mark.parametrize(("setting", "accountant"), list(product(PAPER, ("rdp", "pld"))))
def test_step_amplification_spends_everyones_budget(setting: str, accountant: str) -> None:
    for group in plan_of(setting, "step-amplification", accountant).groups:
        assert group.epsilon_by_phase[-1] >= 0.995 * 8


@pytest.mark.parametrize("setting", PAPER)
def test_the_optimiser_is_never_worse_and_says_by_how_much(setting: str) -> None:
    plans = [plan_of(setting, planner, "rdp") for planner in ("optimised", "step-amplification")]
    best, start = (
        objective(Schedule(phases=plan.phases, selections=plan.selections), plan.setting.group_sizes) for plan in plans
    )
    assert best >= start
    stated = re.search(r"([\d.]+)% above step amplification", plans[0].remark)
    if stated:
        assert float(stated[1]) == pytest.approx(100 * (best / start - 1), abs=0.06)
    else:
        assert best == start


def test_the_branch_promise_recomputed_by_dp_accounting() -> None:
    # Every sequence of scores and both directions, with dp-accounting's own hockey sticks as leaves.
    plan = dpal.plan(target_epsilon=8, selection="threshold", selection_epsilon=2, **PAPER["cifar10"])
    document = plan.to_json()
    groups = range(len(document["groups"]))
    histories = [
        [
            (phase["sampling_probabilities"][group], phase["noise_multiplier"], phase["steps"])
            for phase in document["phases"]
            if group < len(phase["sampling_probabilities"])
        ]
        for group in groups
    ]
    accountants = [dp_accounting_pld(history) for history in histories]
    assert max(accountant.get_epsilon(document["target_delta"]) for accountant in accountants) <= 8
    worst = 0.0
    for direction, highs in product(("_pmf_remove", "_pmf_add"), product((False, True), repeat=len(plan.selections))):
        leaves = [getattr(accountant._pld, direction) for accountant in accountants]
        total, reached, epsilon = 0.0, 1.0, 8.0
        for is_high, selection, leaf in zip(highs, document["selections"], leaves[1:], strict=True):
            record = selection["probability_high"] if is_high else selection["probability_low"]
            blank = selection["probability_low"]
            a, b = (record, blank) if direction == "_pmf_remove" else (blank, record)
            epsilon -= selection["threshold_epsilon"]
            total += reached * a * leaf.get_delta_for_epsilon(epsilon - math.log(a / b))
            epsilon -= math.log((1 - a) / (1 - b))
            reached *= 1 - a
        total += reached * max(0.0, -math.expm1(epsilon))
        worst = max(worst, total)
    assert 0.9 * document["target_delta"] < worst <= document["target_delta"]
