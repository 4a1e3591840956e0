from pathlib import Path

import pytest
from small_campaigns import create, reopened

from dpal.errors import InvalidArgument
from dpal.reports.histogram_plot import plot_histograms


def test_histograms_are_for_simulations_only(tmp_path: Path) -> None:
    campaign = create(tmp_path / "seeded")
    campaign.run()
    scores, selected = campaign.simulated_scores(1)
    state = campaign.state()
    assert selected.sum() == len(state.selected[1].to_label) + len(state.selected[1].retired)
    assert len(scores) == 150 - 40
    assert ((scores >= 0) & (scores <= 1)).all()
    plot_histograms([(scores, selected), campaign.simulated_scores(2)], tmp_path / "h.png", acquisition="entropy")
    assert (tmp_path / "h.png").stat().st_size > 5_000
    create(tmp_path / "private", seed=None).run()
    with pytest.raises(InvalidArgument, match="scores are private"):
        reopened(tmp_path / "private").simulated_scores(1)
