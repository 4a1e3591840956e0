"""SIGKILL around the private mean: it is released once, on one charge, and the campaign is as if undisturbed."""

import signal
from pathlib import Path

import numpy as np
import pytest
from killed_programs import PROGRAM, program, released, state_of
from tiny_encoder import encoded_campaign

from dpal.campaign import fault_points
from dpal.campaign.campaign import Campaign

SCRIPT = PROGRAM.with_name("tiny_encoder.py")
POINTS = [point for point in fault_points.POINTS if point.startswith("mean.")]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed") / "campaign"
    encoded_campaign(folder).run()
    return folder


@pytest.mark.parametrize("point", POINTS)
def test_the_mean_is_released_once_whatever_dies(tmp_path: Path, undisturbed: Path, point: str) -> None:
    folder = tmp_path / "campaign"
    encoded_campaign(folder)
    assert program("run", folder, kill_at=point, script=SCRIPT).returncode == -signal.SIGKILL
    state = state_of(folder)
    assert len(state.charges) == (0 if point == "mean.before-charge" else 1)
    # No release without a committed charge.
    assert (state.mean is not None) == (point == "mean.recorded")
    done = program("run", folder, script=SCRIPT)
    assert done.returncode == 0, done.stderr
    state = state_of(folder)
    assert [charge.kind for _, charge in state.charges].count("charged-mean") == 1
    assert state.mean == state_of(undisturbed).mean is not None
    assert released(folder) == released(undisturbed)
    assert Campaign(folder).verify().holds


def test_a_record_withdrawn_before_the_mean_is_released_is_not_in_it_and_the_noise_is_other_noise(
    tmp_path: Path, undisturbed: Path
) -> None:
    """With the same noise, whatever the first attempt left behind and the mean would differ by that record's row."""
    folder = tmp_path / "campaign"
    encoded_campaign(folder)
    assert program("run", folder, kill_at="mean.computed", script=SCRIPT).returncode == -signal.SIGKILL
    name = Campaign(folder).reader.contents().ids[3]
    Campaign(folder).withdraw([name], reason="consent withdrawn")
    done = program("run", folder, script=SCRIPT)
    assert done.returncode == 0, done.stderr
    state, without = state_of(folder), state_of(undisturbed)
    assert [charge.kind for _, charge in state.charges].count("charged-mean") == 1
    assert state.mean is not None
    assert without.mean is not None
    # One row of 150 moves no coordinate by more than 1 / 150, other noise of 20 / 150 nearly all of them.
    moved = np.abs(np.subtract(state.mean, without.mean))
    assert np.median(moved) > 1 / 150
    assert not np.load(folder / "features.npy")[3].any()
    assert Campaign(folder).verify().holds
