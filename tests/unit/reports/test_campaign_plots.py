from typing import Any

import pytest

from dpal.reports.campaign_plots import learning_figure, spending_figure


def report(accounting: str = "basic", groups: int = 3) -> dict[str, Any]:
    """Three phases, of which the second was given up, so that it has no measurement."""
    return {
        "plan": {
            "accounting": accounting,
            "target_epsilon": 8.0,
            "phases": [{"steps": 10}, {"steps": 20}, {"steps": 30}],
            "groups": [{"epsilon_by_phase": [1.0 + group, 2.0 + group, 3.0 + group]} for group in range(groups)],
            "never_selected": {"epsilon_by_phase": [0.0, 0.5, 9.0]},
        },
        "status": {"phases_done": 1, "phases_given_up": [2]},
        "labels_by_phase": [100, 150, 180],
        "labels_are_planned": False,
        "metrics": [{"phase": 1, "accuracy": 0.5}, {"phase": 3, "accuracy": 0.8}],
    }


def test_a_metric_is_drawn_at_its_own_phase_with_the_largest_epsilon() -> None:
    by_labels, by_epsilon = learning_figure({"c": report()}, "accuracy").axes
    assert by_labels.lines[0].get_xydata().tolist() == [[100, 0.5], [180, 0.8]]  # type: ignore[union-attr]
    assert by_epsilon.lines[0].get_xydata().tolist() == [[3.0, 0.5], [9.0, 0.8]]  # type: ignore[union-attr]


def test_the_axis_says_whether_labels_are_planned() -> None:
    planned = report() | {"labels_are_planned": True}
    axes = [learning_figure(each, "accuracy").axes[0] for each in ({"a": report()}, {"a": planned})]
    assert [axis.get_xlabel() for axis in axes] == ["labels asked for", "labels planned"]
    both = learning_figure({"a": report(), "b": planned}, "accuracy").axes[0]
    assert both.get_xlabel() == "labels asked for, or planned where selections stay inside"


def test_renyi_accounting_has_no_curve_by_epsilon() -> None:
    by_labels, by_epsilon = learning_figure({"a": report(), "b": report("renyi")}, "accuracy").axes
    assert len(by_labels.lines) == 2
    assert len(by_epsilon.lines) == 1


@pytest.mark.parametrize(
    ("accounting", "groups", "labels"),
    [
        ("basic", 3, ["budget", "initial set", "query 1", "query 2"]),
        ("branch", 3, ["budget", "initial set", "everyone else"]),
        ("basic", 7, ["budget", "initial set", "last query"]),
    ],
)
def test_lines_of_spending(accounting: str, groups: int, labels: list[str]) -> None:
    spent, steps = spending_figure(report(accounting, groups)).axes
    legend = spent.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == labels
    # One phase done and one given up; the third is to come.
    colours = [bar.get_facecolor() for bar in steps.patches]  # type: ignore[attr-defined]
    assert colours[0] == colours[1] != colours[2]
