"""Whom the initial set and queries ask for."""

from pathlib import Path

import numpy as np
from small_campaigns import linear_campaign, linear_plan, linear_pool

from dpal.campaign.choosing import pool_scores, queried, records_to_label
from dpal.randomness import SeededRandomness
from dpal.selection.baselines import RandomSelection


def test_every_record_has_a_score_whoever_is_labelled(tmp_path: Path) -> None:
    campaign = linear_campaign(tmp_path / "c")
    runner = campaign.runner
    learner = runner.model.at(campaign.state())
    before = pool_scores(learner, runner.units, campaign.parts, SeededRandomness(seed=1, nothing_is_private=True))
    assert before.shape == (24,)
    chosen = queried(
        campaign.state(),
        RandomSelection(query_size=24, unlabelled=24),
        runner.units,
        campaign.parts,
        scores=lambda: before,
        randomness=SeededRandomness(seed=2, nothing_is_private=True),
    )
    assert set(chosen.to_label.tolist()) == set(linear_pool().ids.tolist())


def test_those_that_are_labelled_are_not_asked_for_again(tmp_path: Path) -> None:
    campaign = linear_campaign(tmp_path / "c", plan=linear_plan(query_sizes=(5,)))
    campaign.run()
    state, units = campaign.state(), campaign.runner.units
    left = 24 - sum(len(group) for group in state.asked)
    rest = queried(
        state,
        RandomSelection(query_size=left, unlabelled=left),
        units,
        campaign.parts,
        scores=lambda: np.zeros(24),
        randomness=SeededRandomness(seed=3, nothing_is_private=True),
    )
    assert len(rest.to_label) == left
    assert not set(rest.to_label.tolist()) & state.taken()
    assert records_to_label(rest, state, 1, units, campaign.parts.pool) == tuple(rest.to_label.tolist())
