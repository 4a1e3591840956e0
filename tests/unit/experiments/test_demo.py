from pathlib import Path

import pytest

from dpal.errors import InvalidArgument
from dpal.experiments.demo import _MARK, DemoRow, _clear, difference_in_words, run_demo


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


def test_an_earlier_demonstration_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "demo"
    _clear(folder)
    assert [path.name for path in folder.iterdir()] == [_MARK]
    (folder / "random").mkdir()
    _clear(folder)
    assert [path.name for path in folder.iterdir()] == [_MARK]


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_it_did_not_make_is_never_cleared(tmp_path: Path, kind: str) -> None:
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("mine")
    with pytest.raises(InvalidArgument, match="new, empty, or made by an earlier demonstration"):
        _clear(tmp_path if kind == "folder" else thesis)
    assert thesis.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [thesis]
