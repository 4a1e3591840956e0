import re
from dataclasses import replace
from io import StringIO

from rich.console import Console, RenderableType
from small_campaigns import linear_plan

from dpal.privacy.rounding import rounded_up
from dpal.reports.plan_table import NOT_PRIVATE, comparison, plan_view


def shown(view: RenderableType, width: int = 220) -> str:
    console = Console(file=StringIO(), width=width)
    console.print(view)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_every_epsilon_is_rounded_up() -> None:
    plan = linear_plan()
    text = shown(plan_view(plan))
    assert f"ε = {rounded_up(plan.epsilon, 4):.4f} of 8" in text
    last = re.search(r"│\s+3 │\s+4 │ .*?([\d.]+) │\n", text)
    assert last is not None
    assert float(last[1]) == rounded_up(plan.groups[-1].epsilon_by_phase[-1], 4)
    assert float(last[1]) >= plan.groups[-1].epsilon_by_phase[-1]


def test_many_phases_show_both_ends() -> None:
    plan = linear_plan(records=400, initial_size=40, query_sizes=(5,) * 11, selection="random", planner="naive")
    text = shown(plan_view(plan))
    assert "rate 12" in text
    assert "rate 6" not in text
    assert "…" in text


def test_a_selection_that_is_not_private_is_flagged() -> None:
    assert NOT_PRIVATE in shown(plan_view(linear_plan(selection="none")))
    assert NOT_PRIVATE not in shown(plan_view(linear_plan()))


def test_planners_side_by_side_say_why_one_is_missing() -> None:
    plan = linear_plan()
    text = shown(comparison({"a": replace(plan, remark="a remark"), "b": "there is no plan b"}))
    assert "b: there is no plan b" in text
    assert "a: a remark" in text
    assert f"{rounded_up(plan.epsilon, 4):.4f}" in text
