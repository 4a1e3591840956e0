import re
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console, RenderableType
from settings import SMALL
from small_campaigns import linear_plan

import dpal
from dpal.planning.promises import WORDS
from dpal.privacy.rounding import rounded_up
from dpal.reports.plan_table import NOT_PRIVATE, comparison, plan_view
from dpal.selection.cut import CutSelection


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


def test_a_cut_shows_what_to_expect() -> None:
    plan = dpal.plan(**SMALL)
    text = " ".join(shown(plan_view(plan)).split())
    expected = 400 + sum(cut.wanted for cut in plan.selections if isinstance(cut, CutSelection))
    assert f"labels about {expected} expected of 800 budgeted" in text
    for cut in plan.selections:
        assert isinstance(cut, CutSelection)
        cells = (
            f"{rounded_up(cut.cut_epsilon, 4):.4f}",
            str(cut.wanted),
            str(cut.query_size),
            f"{cut.unlabelled:,}",
            f"{rounded_up(100 * cut.overrun_probability, 2):.2f}%",
            f"{1 - cut.wanted / cut.query_size:.1%}",
        )
        assert " │ ".join(cells) in text
    assert "all of them are asked for; if there are fewer, nobody else is" in text


@pytest.mark.parametrize("promise", ["inside", "released"])
def test_a_plan_states_its_promise(promise: str) -> None:
    plan = linear_plan(selections=promise)
    text = " ".join(shown(plan_view(plan)).split())
    assert WORDS[promise].short in text
    assert WORDS[promise].meaning in text
    other = WORDS["released" if promise == "inside" else "inside"]
    assert other.short not in text
    assert ("expected of" in text) is (promise == "inside")
    # A selection that protects nobody promises nothing.
    assert WORDS["released"].short not in shown(plan_view(linear_plan(selection="none")))
    assert WORDS["inside"].short not in shown(plan_view(linear_plan(selection="none")))


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
