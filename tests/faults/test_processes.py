"""Several processes: the campaign of one, bit for bit; killed wherever it may be, nothing is lost or charged twice.

One random kill in CI, since every process imports torch; DPAL_KILLS=10 kills ten times (make test-processes).
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from killed_programs import PATH, charged, copied, released, state_of
from large_campaigns import create as create_large
from large_pools import write_pool
from rank_campaigns import children, create, is_running, started

from dpal.campaign.campaign import Campaign
from dpal.campaign.facts import Answered, Fact, Produced, Resumed, Selected, Trained
from dpal.campaign.store import Store

KILLS = int(os.environ.get("DPAL_KILLS", "1"))
SECONDS = 240


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small") / "campaign"
    create(folder)
    return folder


@pytest.fixture(scope="module")
def alone(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same campaign, run by one process to its end, which imports nothing that several need."""
    folder = Path(shutil.copytree(small, tmp_path_factory.mktemp("alone") / "campaign"))
    code = (
        "import sys; from typer.testing import CliRunner; from dpal.cli import app;"
        f"done = CliRunner().invoke(app, ['run', {str(folder)!r}]); assert done.exit_code == 0, done.output;"
        "assert 'dpal.training.loop' in sys.modules and 'dpal.training.process_group' not in sys.modules"
    )
    environment = os.environ | {"PYTHONPATH": PATH}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def facts_of(folder: Path) -> list[Fact]:
    """What was recorded, without what differs from run to run: salts, times, and how many processes it was."""
    store = Store(folder, read_only=True)
    facts = [recorded.fact for recorded in store.recorded()]
    store.close()
    facts = [replace(fact, salt="") if isinstance(fact, Answered) else fact for fact in facts]
    return [replace(fact, seconds=0.0, processes=1) if isinstance(fact, Produced | Trained) else fact for fact in facts]


def ended(process: subprocess.Popen) -> str:
    """What it said, once it and all that it has started have ended."""
    others = children(process)
    words = process.communicate(timeout=SECONDS)[1]
    deadline = time.monotonic() + 20
    while any(is_running(other) for other in others):
        assert time.monotonic() < deadline, "a process outlives the others"
        time.sleep(0.02)
    return words


@pytest.mark.parametrize(("processes", "by_torchrun"), [(2, True), (3, False)])
def test_several_processes_record_what_one_does(
    small: Path, alone: Path, tmp_path: Path, processes: int, by_torchrun: bool
) -> None:
    folder = copied(small, tmp_path)
    process = started(folder, processes, by_torchrun=by_torchrun)
    words = ended(process)
    assert process.returncode == 0, words
    # Facts hold charges, selections and the hashes of weights; with a seed, all of it repeats.
    assert sum(isinstance(fact, Selected) for fact in facts_of(alone)) == 2
    assert facts_of(folder) == facts_of(alone)
    assert released(folder) == released(alone)
    assert [trained.processes for trained in state_of(folder).trained] == [processes] * 2
    assert [trained.processes for trained in state_of(alone).trained] == [1] * 2
    first, second = (Campaign(each).status().epsilon_spent for each in (folder, alone))
    assert first == second
    # Nothing else was written: no key is left, and no file that one process does not write.
    names = [{path.name for path in each.rglob("*") if path.is_file()} for each in (folder, alone)]
    assert names[0] - names[1] <= {"writer.lock"}


def test_two_processes_train_on_a_large_pool(tmp_path: Path) -> None:
    """The others find the copies of the records that rank 0 has just asked for."""
    pool = write_pool(tmp_path / "pool", 3000)
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder, processes in zip(folders, (1, 2), strict=True):
        create_large(folder, pool)
        process = started(folder, processes)
        words = ended(process)
        assert process.returncode == 0, words
    one, two = (released(folder) for folder in folders)
    assert one == two
    assert [trained.processes for trained in state_of(folders[1]).trained] == [2, 2]


def test_a_process_that_dies_ends_the_run_with_one_sentence_and_ctrl_c_with_another(
    small: Path, tmp_path: Path
) -> None:
    folder = copied(small, tmp_path)
    process = started(folder, 2, kill_at="worker.step:5")
    words = ended(process)
    assert process.returncode == 2, words
    assert "error: Process 2 of 2 was killed by signal 9, so all of them were stopped. Nothing is lost" in words
    assert f"dpal run {folder}, with any number of --processes" in words
    assert "Traceback" not in words
    at_death = state_of(folder)
    assert at_death.open_charge is not None
    assert len(at_death.charges) == 2
    process = started(folder, 2)
    while not state_of(folder).resumed:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    words = ended(process)
    assert process.returncode == 130, words
    assert charged(state_of(folder))[:2] == charged(at_death)


def test_killed_at_random_points_nothing_is_lost_and_nothing_charged_twice(
    small: Path, alone: Path, tmp_path: Path
) -> None:
    """Any of them, rank 0 too, at any time, and then with another number of processes."""
    folder = copied(small, tmp_path)
    chance = random.Random(24)  # noqa: S311 (where to kill is no secret)
    attempts, kills = 0, 0
    whom: set[str] = set()
    while kills < KILLS:
        attempts += 1
        assert attempts < 5 * KILLS, "it ends before it can be killed"
        process = started(folder, chance.choice([2, 3]))
        # Counted from when the others are there, since importing torch takes longer than anything else.
        while not (others := children(process)) and process.poll() is None:
            time.sleep(0.01)
        deadline = time.monotonic() + chance.uniform(0.0, 5.0)
        while time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.01)
        victim = chance.choice([process.pid, *others])
        if process.poll() is None and is_running(victim):
            before = charged(state_of(folder))
            os.kill(victim, signal.SIGKILL)
            kills += 1
            whom.add("rank 0" if victim == process.pid else "another")
            killed_at = time.monotonic()
            words = ended(process)
            # Rank 0 may notice only once it has imported torch.
            assert time.monotonic() - killed_at < 60
            assert "Traceback" not in words
            assert process.returncode in ((-signal.SIGKILL,) if victim == process.pid else (2, 0)), words
            assert charged(state_of(folder))[: len(before)] == before
        else:
            ended(process)
        if state_of(folder).finished:
            assert released(folder) == released(alone)
            shutil.rmtree(folder)
            folder = copied(small, tmp_path)
    if not state_of(folder).finished:
        process = started(folder, 2)
        words = ended(process)
        assert process.returncode == 0, words
    assert KILLS < 10 or whom == {"rank 0", "another"}
    after, expected = state_of(folder), state_of(alone)
    assert charged(after) == charged(expected)
    assert released(folder) == released(alone)
    resumed = [fact for fact in facts_of(folder) if not isinstance(fact, Resumed)]
    assert [type(fact) for fact in resumed] == [type(fact) for fact in facts_of(alone)]
    assert after.answers == expected.answers
    assert Campaign(folder).verify().holds
