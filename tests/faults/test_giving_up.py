"""SIGKILL while a phase is given up: before or after, never in between, and nothing of the phase comes back."""

import shutil
import signal
from functools import partial
from pathlib import Path

import killed_programs
import pytest
from killed_programs import state_of
from small_campaigns import create, reopened

from dpal.campaign import fault_points
from dpal.campaign.campaign import Campaign
from dpal.campaign.config import read_config
from dpal.campaign.layout import CONFIG, NEXT_CONFIG
from dpal.campaign.step_randomness import SealedKeys

POINTS = [point for point in fault_points.POINTS if point.startswith("give-up.")]
BEFORE = ["give-up.prepared", "store.in-transaction"]
AFTER = ["store.committed", "seal.overwritten", "give-up.recorded", "give-up.tidied"]
SETTING = "training.learning_rate=0.004"
program = partial(killed_programs.program, seed=None)


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A campaign that died while it trained phase 2, with a half-written model; and the phase's key."""
    folder = tmp_path_factory.mktemp("stuck") / "campaign"
    create(folder, seed=None)
    assert program("run", folder, kill_at="train.charged:2").returncode == -signal.SIGKILL
    (folder / "checkpoints/.phase-2.safetensors.draft").write_bytes(b"half a model")
    (charge,) = SealedKeys(folder).charges()
    return folder, SealedKeys(folder).read(charge)


@pytest.mark.parametrize("point", BEFORE + AFTER)
def test_a_phase_is_given_up_or_it_is_not(stuck: tuple[Path, bytes], tmp_path: Path, point: str) -> None:
    folder, key = Path(shutil.copytree(stuck[0], tmp_path / "campaign")), stuck[1]
    spent = Campaign(folder).status().epsilon_spent
    done = program("give-up", folder, SETTING, kill_at=point)
    assert done.returncode == -signal.SIGKILL, done.stderr
    state = state_of(folder)
    assert state.given_up == ((1,) if point in AFTER else ())
    assert (state.open_charge is None) == (point in AFTER)
    # Whichever file of the two it is, the recorded configuration is there, and the campaign opens with it.
    assert reopened(folder).config.training.learning_rate == (0.004 if point in AFTER else 0.002)
    found = Campaign(folder).verify()
    assert found.holds, found.checks
    assert found.epsilon_spent == spent
    if point in BEFORE:
        # The phase is as it was: it can be resumed with its own key, or given up now.
        assert SealedKeys(folder).read(SealedKeys(folder).charges()[0]) == key
        again = program("give-up", folder, SETTING)
        assert again.returncode == 0, again.stderr
    assert reopened(folder).run(go_on=True).stage == "finished"
    assert state_of(folder).given_up == (1,)
    assert [each.phase for each in state_of(folder).trained] == [0, 2]
    assert read_config(folder / CONFIG).training.learning_rate == 0.004
    assert not (folder / NEXT_CONFIG).exists()
    assert not list((folder / "checkpoints").glob(".*"))
    assert not (folder / "checkpoints/phase-2.safetensors").exists()
    for path in folder.rglob("*"):
        assert path.is_dir() or key not in path.read_bytes(), path
    assert Campaign(folder).verify().holds


def test_a_kill_before_the_record_leaves_the_phase_to_be_run(stuck: tuple[Path, bytes], tmp_path: Path) -> None:
    """With the settings it was charged with: the prepared file never counted."""
    folder = Path(shutil.copytree(stuck[0], tmp_path / "campaign"))
    assert program("give-up", folder, SETTING, kill_at="give-up.prepared").returncode == -signal.SIGKILL
    assert (folder / NEXT_CONFIG).exists()
    assert reopened(folder).run(go_on=True).stage == "finished"
    assert state_of(folder).given_up == ()
    assert read_config(folder / CONFIG).training.learning_rate == 0.002
    assert not (folder / NEXT_CONFIG).exists()
    assert Campaign(folder).verify().holds


def test_every_point_of_giving_up_is_killed_at() -> None:
    assert set(POINTS) <= set(BEFORE + AFTER)
