from dataclasses import replace

import pytest

from dpal.errors import InvalidArgument
from dpal.reports.comparison import Run, latex_table, markdown_table, metric_of, summaries


def run(method: str, values: list[float], labels: tuple[int, ...] = (10, 20)) -> Run:
    metrics = tuple({"accuracy": value} for value in values)
    return Run(
        method=method,
        folder="f",
        labels=labels,
        labels_are_planned=False,
        metrics=metrics,
        epsilon=8.0,
        delta=1e-5,
        is_private=False,
    )


def test_means_and_deviations_by_hand() -> None:
    found = summaries([run("a", [0.5, 0.6]), run("b", [0.1, 0.2]), run("a", [0.7, 0.9])], "accuracy")
    assert [each.method for each in found] == ["a", "b"]
    assert found[0].mean == (pytest.approx(0.6), pytest.approx(0.75))
    assert found[0].deviation[1] == pytest.approx(0.2121, abs=1e-4)
    assert found[1].deviation == (None, None)
    assert "| a | 2 | 8 | 20 | 75.00 ± 21.21 |" in markdown_table(found, "accuracy")
    assert "b & 1 & 8 & 20 & $20.00$ \\\\" in latex_table(found, "accuracy")
    assert "$75.00_{\\pm 21.21}$" in latex_table(found, "accuracy")
    assert "a\\_b \\& c" in latex_table([replace(found[0], method="a_b & c")], "accuracy")
    with pytest.raises(InvalidArgument, match="no accuracy"):
        summaries([run("a", [])], "accuracy")


def test_planned_labels_are_marked() -> None:
    runs = [run("a", [0.5, 0.6]), replace(run("b", [0.5, 0.6]), labels_are_planned=True)]
    compared = summaries(runs, "accuracy")
    assert "| a | 1 | 8 | 20 | 60.00 |" in markdown_table(compared, "accuracy")
    assert "| b | 1 | 8 | 20 (planned) | 60.00 |" in markdown_table(compared, "accuracy")
    assert "b & 1 & 8 & 20 (planned) & $60.00$ \\\\" in latex_table(compared, "accuracy")


def test_an_epsilon_is_shown_with_every_digit() -> None:
    """Rounded to 8 it would be stated too small."""
    summary = replace(summaries([run("a", [0.5, 0.6])], "accuracy")[0], epsilon=8.0000001)
    assert "| 8.0000001 |" in markdown_table([summary], "accuracy")
    assert "& 8.0000001 &" in latex_table([summary], "accuracy")


def test_the_metric_is_the_first_that_a_run_has() -> None:
    assert metric_of([run("a", []), replace(run("b", []), metrics=({"auc": 0.5, "accuracy": 0.1},))]) == "auc"
    assert metric_of([]) == "accuracy"
