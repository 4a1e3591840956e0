from pathlib import Path

import pytest

from dpal.errors import InvalidArgument
from dpal.experiments.demo import DemoRow, difference_in_words, run_demo


def row(name: str, *accuracies: float) -> DemoRow:
    return DemoRow(
        name=name, folder=Path(name), report=Path(name), accuracies=accuracies, epsilon_spent=8.0, holds=True
    )


def test_a_difference_within_two_errors_is_called_none() -> None:
    words = difference_in_words([row("random", 0.90, 0.92, 0.94), row("cut", 0.91, 0.93, 0.95)])
    # Means of 92 and 93, each with a standard error of 2 / √3 points.
    assert words.startswith("The cut is at +1.0 ± 1.6 points") and "no difference" in words


def test_a_clear_difference_is_called_more_than_chance() -> None:
    words = difference_in_words([row("random", 0.80, 0.81, 0.80), row("cut", 0.90, 0.91, 0.90)])
    assert words.startswith("The cut is at +10.0 ± 0.5 points") and "more than chance" in words


def test_one_run_each_says_nothing() -> None:
    assert "says nothing" in difference_in_words([row("random", 0.8), row("cut", 0.9)])


def test_both_kinds_end_with_a_verified_promise_and_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs torch (pip install dpal[train])")
    said: list[str] = []
    rows, picture = run_demo(tmp_path / "demo", tell=said.append, repeats=1)
    assert [entry.name for entry in rows] == ["random", "cut"]
    assert all(entry.holds and entry.epsilon_spent <= 8 and entry.report.is_file() for entry in rows)
    assert picture.is_file() and len(said) == 2
    # An earlier demonstration is replaced, anything else is left alone.
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file.txt").write_text("mine")
    with pytest.raises(InvalidArgument, match="the folder of the demonstration"):
        run_demo(tmp_path / "other", tell=said.append)
    assert (tmp_path / "other" / "file.txt").read_text() == "mine"
