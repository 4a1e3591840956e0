from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from dpal.reports.epsilon_explanation import PUBLISHED, explain_epsilon
from dpal.reports.epsilon_table import epsilon_view, one_in


def shown(**arguments: float) -> str:
    console = Console(file=StringIO(), width=200)
    console.print(epsilon_view(explain_epsilon(**arguments)))  # type: ignore[arg-type]
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_everything_is_shown_from_the_worst_case_to_how_to_choose() -> None:
    text = shown(epsilon=3, delta=1e-5, records_per_person=5)
    words = (
        "ε = 3, δ = 1e-05, for one record",
        "could guess right at most 95.26% of the time",
        "What it does not say",
        "plan with ε = 0.6 and δ =",
        "US Census Bureau",
        "dpal rehearse CONFIG --epsilons 1,2,4,8",
        "docs/epsilon.md",
    )
    places = [text.index(part) for part in words]
    assert places == sorted(places)
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│")]
    assert ["3", "95.26%", "16.87%"] in rows
    assert ["1", "73.11%", "2.68% (1 in 37)"] in rows
    assert "--pool-size checks this" in text
    assert "protects little" not in text


def test_the_page_on_choosing_has_the_same_figures() -> None:
    page = (Path(__file__).parents[3] / "docs/epsilon.md").read_text(encoding="utf-8")
    for line in shown(epsilon=8, delta=1e-5).splitlines():
        if line.startswith("│"):
            assert f"| {' | '.join(cell.strip() for cell in line.split('│')[1:-1])} |" in page, line
    for entry in PUBLISHED:
        assert f"| {entry.epsilon} | {entry.protects} |" in page, entry.who


def test_what_protects_little_is_said_first() -> None:
    text = shown(epsilon=1000, delta=1e-5, pool_size=1000)
    assert text.index("This protects little: ε = 1000 is above 10.") < text.index("could guess right every time")
    assert "--pool-size" not in text


@pytest.mark.parametrize(
    ("probability", "words"), [(0.0267, " (1 in 37)"), (0.01, " (1 in 100)"), (0.1, " (1 in 10)"), (0.36, "")]
)
def test_one_in_so_many_is_never_too_many(probability: float, words: str) -> None:
    assert one_in(probability) == words
