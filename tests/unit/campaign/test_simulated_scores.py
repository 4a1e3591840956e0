"""Scores of simulations: those that the query saw, and never those of a real campaign."""

from pathlib import Path

import numpy as np
import pytest
from small_campaigns import create

from dpal.errors import InvalidArgument


def test_the_shown_scores_are_those_that_chose(tmp_path: Path) -> None:
    # Without noise, who was taken is above who was not.
    campaign = create(tmp_path / "c", selection="none", selections="released")
    campaign.run(go_on=True)
    scores, taken = campaign.simulated_scores(1)
    assert taken.sum() == len(campaign.state().groups[1])
    assert scores[taken].min() >= np.sort(scores[~taken])[-1]
    with pytest.raises(InvalidArgument, match="from 1 to 2"):
        campaign.simulated_scores(3)


def test_scores_of_a_real_campaign_are_not_shown(tmp_path: Path) -> None:
    campaign = create(tmp_path / "c", seed=None)
    campaign.run(go_on=True)
    with pytest.raises(InvalidArgument, match="scores are private"):
        campaign.simulated_scores(1)
