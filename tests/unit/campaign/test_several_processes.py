"""Which of several processes this one is, and what is refused. Whole runs: tests/faults/test_processes.py."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from dpal.campaign.phase_task import PhaseTask
from dpal.campaign.several_processes import VARIABLE, Place, training_processes
from dpal.errors import DpalError, InvalidArgument, ProcessLost
from dpal.planning.plan import Phase

TORCHRUN = {"TORCHELASTIC_RUN_ID": "none", "RANK": "1", "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3"}


def test_a_process_that_nobody_started_is_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert Place.of_this_process() is None
    # Other programs use this name too.
    monkeypatch.setenv("RANK", "1")
    assert Place.of_this_process() is None
    for count in (None, 1):
        with training_processes(tmp_path, count, None) as processes:
            assert (processes.rank, processes.count) == (0, 1)


def test_torchrun_and_rank_0_say_who_a_process_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    assert Place.of_this_process() == Place(rank=1, count=3, meeting_point="", by_torchrun=True)
    monkeypatch.setenv(VARIABLE, "2 4 /a folder/meeting-point")
    assert Place.of_this_process() == Place(rank=2, count=4, meeting_point="/a folder/meeting-point", by_torchrun=False)


def test_several_machines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (TORCHRUN | {"WORLD_SIZE": "6"}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(DpalError, match=r"6 processes on several machines.*no noise yet.*Nothing was charged"):
        Place.of_this_process()


@pytest.mark.parametrize(
    ("count", "place"), [(0, None), (2, Place(rank=0, count=3, meeting_point="", by_torchrun=True))]
)
def test_a_wrong_number_of_processes_is_refused(tmp_path: Path, count: int, place: Place | None) -> None:
    with pytest.raises(InvalidArgument, match="--processes is"), training_processes(tmp_path, count, place):
        pass


def test_others_are_started_only_when_there_is_something_to_train(tmp_path: Path) -> None:
    with training_processes(tmp_path, 3, None) as processes:
        assert (processes.rank, processes.count) == (0, 3)
    with pytest.raises(KeyboardInterrupt), training_processes(tmp_path, 3, None):
        # Ctrl-C stays Ctrl-C where nobody died.
        raise KeyboardInterrupt


@pytest.mark.skipif(sys.platform != "linux", reason="signals have other names")
def test_a_process_that_cannot_work_ends_all_and_says_why(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    task = PhaseTask(
        number=0,
        phases=1,
        phase=Phase(steps=1, noise_multiplier=1.0, expected_batch_size=1.0, sampling_probabilities=(1.0,)),
        later_records=0.0,
        pool_size=None,
        groups=(np.arange(3),),
        targets=np.zeros(3, dtype=np.int64),
        units=None,
        key=bytes(32),
        seed=None,
        withdrawn=frozenset(),
        settings="",
        pool="",
    )
    with (
        pytest.raises(ProcessLost, match=r"Process 2 of 2 ended with exit code 1, so all of them were stopped"),
        training_processes(tmp_path, 2, None) as processes,
    ):
        processes.send(task.to_bytes(b""))
        processes.all_agree(True)
    assert re.search(r"process 2 of 2: .* is not a campaign", capfd.readouterr().err)
