from typing import Any

import pytest

from dpal.reports.campaign_plots import held_out_figure, learning_figure, spending_figure


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


HELD_OUT: dict[str, Any] = {
    "majority_class": "costs $5",
    "majority": 0.625,
    "chance": 0.5,
    "several_labels": False,
    "by_class": [
        {"class": "normal", "records": 234, "right": 4, "recall": 4 / 234},
        {"class": "costs $5", "records": 390, "right": 388, "recall": 388 / 390},
        {"class": "none", "records": 0, "right": 0, "recall": None},
    ],
    "calibration": [
        {"answers": 4, "right": 3, "confidence": 0.55},
        {"answers": 620, "right": 389, "confidence": 0.95},
    ],
}


def test_a_curve_that_hardly_rises_does_not_look_like_a_rise() -> None:
    """62.5% to 62.9%, where the majority class has 62.5%: the line must be nearly flat."""
    measured = [{"phase": 1, "accuracy": 0.625}, {"phase": 3, "accuracy": 0.629}]
    by_labels, by_epsilon = learning_figure(
        {"c": report() | {"metrics": measured, "held_out": HELD_OUT}}, "accuracy"
    ).axes
    low, high = by_labels.get_ylim()
    assert high == 1.0
    assert 0.6 < low < 0.625
    assert (0.629 - 0.625) / (high - low) < 0.02
    for axes in (by_labels, by_epsilon):
        (line,) = (line for line in axes.lines if str(line.get_label()).startswith("always"))
        assert set(line.get_ydata()) == {0.625}  # type: ignore[arg-type]
    # A model below the baseline is still in the picture.
    worse = report() | {"held_out": HELD_OUT}
    assert learning_figure({"c": worse}, "accuracy").axes[0].get_ylim()[0] < 0.5


def test_balanced_accuracy_and_auc_are_drawn_against_chance() -> None:
    for metric in ("balanced_accuracy", "auc"):
        axes = learning_figure({"c": report() | {"held_out": HELD_OUT}}, metric).axes[0]
        assert [line.get_label() for line in axes.lines][-1] == "chance: 50.0%"


def test_recall_by_class_and_reliability() -> None:
    figure = held_out_figure(HELD_OUT)
    figure.canvas.draw()
    by_class, reliability = figure.axes
    # The largest class first; one without records has no bar.
    assert [text.get_text() for text in by_class.get_yticklabels()] == [r"costs \$5 (390)", "normal (234)", "none (0)"]
    widths = [bar.get_width() for bar in by_class.patches]  # type: ignore[attr-defined]
    assert widths == pytest.approx([388 / 390, 4 / 234, 0])
    (points,) = reliability.collections
    assert points.get_offsets().tolist() == [[0.55, 0.75], [0.95, pytest.approx(389 / 620)]]  # type: ignore[union-attr]
    assert reliability.get_xlim() == reliability.get_ylim() == (0, 1.02)
    # Of many classes, those with the most records.
    many = [{"class": f"c{number}", "records": number, "right": 0, "recall": 0.0} for number in range(1, 101)]
    crowded = held_out_figure(HELD_OUT | {"by_class": many}).axes[0]
    assert len(crowded.patches) == 24
    assert "largest of 100" in crowded.get_xlabel()
