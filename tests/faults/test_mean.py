"""SIGKILL around the private mean: it is released once, on one charge, and the campaign is as if undisturbed."""

import signal
from pathlib import Path

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
