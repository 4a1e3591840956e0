from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="needs matplotlib (pip install dpal[plots])")

from dpal.reports.final_plot import final_figure


def test_means_and_errors_are_on_the_picture(tmp_path: Path) -> None:
    figure = final_figure({"random": (0.90, 0.92), "cut": (0.93, 0.95)}, "accuracy")
    words = [text.get_text() for text in figure.axes[0].texts]
    assert words == ["random\n91.0% ± 1.0%", "cut\n94.0% ± 1.0%"]
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["random", "cut"]
    figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1_000


def test_one_campaign_has_no_error() -> None:
    figure = final_figure({"cut": (0.5,)}, "accuracy")
    assert figure.axes[0].texts[0].get_text() == "cut\n50.0% ± 0.0%"
