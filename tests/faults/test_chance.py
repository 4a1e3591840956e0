"""SIGKILL around a stop at chance: whatever dies, nothing is charged until someone says to go on."""

import json
import shutil
import signal
from pathlib import Path

import pytest
from killed_programs import program, state_of
from small_campaigns import blind_campaign, blind_opened

from dpal.campaign.campaign import Campaign
from dpal.campaign.layout import CONFIG, NEXT_CONFIG

SETTING = "training.learning_rate=1e-29"


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("blind") / "campaign"
    blind_campaign(folder)
    return folder


@pytest.fixture(scope="module")
def stopped(planned: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(shutil.copytree(planned, tmp_path_factory.mktemp("stopped") / "campaign"))
    assert blind_opened(folder).run().is_stopped
    return folder


@pytest.mark.parametrize(
    "point", ["train.trained", "train.produced", "train.recorded", "evaluate.measured", "evaluate.recorded"]
)
def test_a_run_that_died_stops_where_an_undisturbed_one_does(planned: Path, tmp_path: Path, point: str) -> None:
    folder = Path(shutil.copytree(planned, tmp_path / "campaign"))
    assert program("run-blind", folder, kill_at=point).returncode == -signal.SIGKILL
    for _ in range(2):
        done = program("run-blind", folder)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["stage"] == "stopped-at-chance"
    # The initial set and the first phase, and nothing after them.
    assert [charge.kind for _, charge in state_of(folder).charges] == ["charged-selection", "charged-training"]
    assert Campaign(folder).verify().holds


@pytest.mark.parametrize(
    ("point", "is_told"),
    [
        ("go-on.prepared", False),
        ("store.in-transaction", False),
        ("store.committed", True),
        ("go-on.recorded", True),
        ("select.before-charge", True),
    ],
)
def test_going_on_is_recorded_or_it_is_not(stopped: Path, tmp_path: Path, point: str, is_told: bool) -> None:
    folder = Path(shutil.copytree(stopped, tmp_path / "campaign"))
    assert program("run-blind", folder, "--go-on", SETTING, kill_at=point).returncode == -signal.SIGKILL
    state = state_of(folder)
    assert state.went_on == ((0,) if is_told else ())
    assert len(state.charges) == 2
    # Whichever file has it, the recorded configuration is there.
    campaign = blind_opened(folder)
    assert campaign.config.training.learning_rate == (1e-29 if is_told else 1e-30)
    # Told once is enough for this phase; what was not recorded was not said. The next phase stops again.
    status = campaign.run()
    assert status.is_stopped
    assert status.phases_done == (2 if is_told else 1)
    assert not (folder / NEXT_CONFIG).exists()
    assert (folder / CONFIG).is_file()
    assert campaign.run(go_on=True).stage == "finished"
    assert Campaign(folder).verify().holds
