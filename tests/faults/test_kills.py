"""SIGKILL at every named point, then resume: nothing is lost, nothing is released without its charge, nothing twice."""

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from killed_programs import PATH, PROGRAM, charged, copied, program, released, state_of
from small_campaigns import RECORDS, create, reopened, small_pool

from dpal.campaign import fault_points
from dpal.campaign.campaign import Campaign
from dpal.campaign.facts import ChargedSelection, ChargedTraining
from dpal.campaign.step_randomness import SealedKeys
from dpal.campaign.store import Store
from dpal.errors import CampaignBusy
from dpal.randomness import SealedRandomness
from dpal.selection import RandomSelection

CREATE = [point for point in fault_points.POINTS if point.startswith("create.")]
IMPORT = [point for point in fault_points.POINTS if point.startswith("import.")]
# Killed in tests/faults/test_giving_up.py.
GIVE_UP = [point for point in fault_points.POINTS if point.startswith("give-up.")]
# Killed in tests/faults/test_chance.py.
GO_ON = [point for point in fault_points.POINTS if point.startswith("go-on.")]
# Killed in tests/faults/test_encoding.py.
ENCODE = [point for point in fault_points.POINTS if point.startswith("encode.")]
# Killed in tests/faults/test_mean.py.
MEAN = [point for point in fault_points.POINTS if point.startswith("mean.")]
# Killed in tests/faults/test_inbox.py.
INBOX = [point for point in fault_points.POINTS if point.startswith("inbox.")]
# Killed in tests/faults/test_processes.py.
WORKER = [point for point in fault_points.POINTS if point.startswith("worker.")]
# Killed in tests/faults/test_snapshots.py.
SNAPSHOT = [point for point in fault_points.POINTS if point.startswith("train.snapshot-")]
ELSEWHERE = ("create.", "import.", "give-up.", "go-on.", "encode.", "mean.", "inbox.", "worker.", "train.snapshot-")
# Points of a run, some of them later in its life too.
RUN = [point for point in fault_points.POINTS if not point.startswith(ELSEWHERE)]
LATER = [
    "seal.written:4",
    "seal.overwritten:4",
    "select.charged:2",
    "select.recorded:3",
    "train.charged:3",
    "train.step:9",
    "train.checkpoint-written:2",
]
IN_TRANSACTIONS = [f"store.in-transaction:{number}" for number in (3, 5, 9)] + ["store.committed:4"]


@pytest.mark.parametrize("point", RUN + LATER + IN_TRANSACTIONS)
def test_a_killed_run_resumes_as_if_nothing_had_happened(
    planned: Path, undisturbed: Path, tmp_path: Path, point: str
) -> None:
    folder = copied(planned, tmp_path)
    done = program("run", folder, kill_at=point)
    assert done.returncode == -signal.SIGKILL, done.stderr
    at_death = state_of(folder)
    spent_at_death = Campaign(folder).status().epsilon_spent
    # Every model that lies there was paid for before.
    phases_charged = sum(isinstance(charge, ChargedTraining) for charge in charged(at_death))
    models = sorted(path.name for path in (folder / "checkpoints").glob("phase-*"))
    assert len(models) <= phases_charged
    campaign = reopened(folder)
    assert campaign.run().stage == "finished"
    after, expected = state_of(folder), state_of(undisturbed)
    # The plan and the ledger are an undisturbed run's; so is every release, bit for bit.
    assert after.created == expected.created
    assert charged(after) == charged(expected)
    assert charged(after)[: len(at_death.charges)] == charged(at_death)
    assert released(folder) == released(undisturbed)
    assert after.answers == expected.answers
    assert at_death.answers.items() <= after.answers.items()
    assert campaign.status().epsilon_spent >= spent_at_death
    assert campaign.verify().holds


@pytest.mark.parametrize("point", CREATE)
def test_a_killed_creation_leaves_a_campaign_or_none(tmp_path: Path, point: str) -> None:
    folder = tmp_path / "campaign"
    done = program("create", folder, kill_at=point)
    assert done.returncode == -signal.SIGKILL, done.stderr
    if point == "create.moved":
        assert Campaign(folder).status().stage == "planned"
        return
    assert not folder.exists()
    # Trying again works, and leaves nothing of the first attempt.
    assert program("create", folder).returncode == 0
    assert Campaign(folder).status().stage == "planned"
    assert [path.name for path in tmp_path.iterdir()] == ["campaign"]


def labels_table(path: Path, folder: Path, count: int) -> dict[str, int]:
    """A table with the true labels of so many waiting records."""
    pool = small_pool()
    waiting = state_of(folder).missing(0)[:count]
    assert pool.labels is not None
    answers = {name: int(pool.labels[pool.positions([name])[0]]) for name in waiting}
    with path.open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerows([("id", "label"), *answers.items()])
    return answers


@pytest.mark.parametrize("point", IMPORT)
def test_a_killed_import_is_taken_whole_or_not_at_all(tmp_path: Path, point: str) -> None:
    folder = tmp_path / "campaign"
    create(folder, oracle="files")
    assert reopened(folder).run().internal.waiting_for_labels == 40
    answers = labels_table(tmp_path / "labels.csv", folder, 25)
    done = program("import", folder, tmp_path / "labels.csv", kill_at=point)
    assert done.returncode == -signal.SIGKILL
    assert state_of(folder).answers in ({}, answers)
    if point == "import.recorded":
        assert state_of(folder).answers == answers
    again = program("import", folder, tmp_path / "labels.csv")
    assert again.returncode == 0
    # What was acknowledged is there, whatever happens next.
    assert program("run", folder, kill_at="labels.asked").returncode == -signal.SIGKILL
    assert state_of(folder).answers == answers


@pytest.mark.parametrize("point", ["select.charged", "select.chosen", "store.in-transaction:2"])
def test_a_selection_that_died_is_done_again_with_its_own_sealed_key(tmp_path: Path, point: str) -> None:
    folder = tmp_path / "campaign"
    create(folder, seed=None)
    assert program("run", folder, kill_at=point).returncode == -signal.SIGKILL
    key = SealedKeys(folder).read(2)
    pool = small_pool()
    expected = RandomSelection(query_size=40, unlabelled=RECORDS).choose(
        np.zeros(RECORDS), highest=1.0, randomness=SealedRandomness(key), ids=pool.ids
    )
    reopened(folder).run()
    assert state_of(folder).selected[0].to_label == tuple(expected.to_label.tolist())
    assert state_of(folder).resumed == 1
    # Once the release is recorded, its key is nowhere in the folder.
    for path in folder.rglob("*"):
        assert path.is_dir() or key not in path.read_bytes(), path


def test_keys_come_from_the_system_and_differ(tmp_path: Path) -> None:
    keys = []
    for number in range(2):
        folder = tmp_path / str(number)
        create(folder, seed=None)
        program("run", folder, kill_at="train.charged")
        (charge,) = SealedKeys(folder).charges()
        keys.append(SealedKeys(folder).read(charge))
    assert keys[0] != keys[1]
    assert all(len(key) == 32 for key in keys)


def test_labels_that_come_after_a_charge_wait_for_the_next_phase(planned: Path, tmp_path: Path) -> None:
    """A correction between death and resumption must not meet noise that was made for other labels."""
    folder = copied(planned, tmp_path)
    assert program("run", folder, kill_at="train.trained").returncode == -signal.SIGKILL
    twin = Path(shutil.copytree(folder, tmp_path / "twin"))
    state = state_of(folder)
    corrected = dict.fromkeys(list(state.answers)[:20], "skip")
    table = tmp_path / "corrections.csv"
    table.write_text("id,label\n" + "".join(f"{name},{word}\n" for name, word in corrected.items()))
    Campaign(folder).import_labels(table, small_pool())
    for each in (folder, twin):
        reopened(each).run()
    first, second = released(folder)[1], released(twin)[1]
    assert first[0] == second[0]
    assert first[1] != second[1]


def test_two_processes_race_and_one_runs(planned: Path, tmp_path: Path) -> None:
    folder = copied(planned, tmp_path)
    environment = os.environ | {"PYTHONPATH": PATH}
    command = [sys.executable, str(PROGRAM), "run", str(folder)]
    racers = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = [racer.communicate(timeout=300) for racer in racers]
    losers = [text for racer, (_, text) in zip(racers, answers, strict=True) if racer.returncode]
    state = state_of(folder)
    assert state.finished
    # Either the second came too late and found everything done, or it was refused; never did both run a step.
    assert len(losers) <= 1
    assert all("CampaignBusy" in text and "Nothing was changed" in text for text in losers)
    assert len(state.selected) == 3
    assert len(state.trained) == 3
    assert state.resumed == 0


def test_a_second_writer_is_refused_and_readers_read(planned: Path, tmp_path: Path) -> None:
    folder = copied(planned, tmp_path)
    campaign, second = reopened(folder), reopened(folder)
    seen: list[str] = []

    class Nosy:
        name = "nosy"

        def ask(self, ids: list[str], pool: object) -> None:
            with pytest.raises(CampaignBusy, match=rf"Process {os.getpid()}.*Nothing was changed"):
                second.run()
            seen.append(Campaign(folder).status().stage)

    nosy = reopened(folder, oracle=Nosy())  # type: ignore[arg-type]
    nosy.run()
    assert seen == ["waiting-for-labels"]
    assert campaign.run().stage == "finished"


def test_readers_read_all_the_time_while_a_campaign_runs(planned: Path, tmp_path: Path) -> None:
    """Never a false alarm, and never an older state than the one before."""
    folder = copied(planned, tmp_path)
    environment = os.environ | {"PYTHONPATH": PATH}
    command = [sys.executable, str(PROGRAM), "run", str(folder)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seen = [1]
    while process.poll() is None:
        seen.append(Campaign(folder).state().last)
        time.sleep(0.01)
    assert process.returncode == 0
    assert seen == sorted(seen)
    assert len(set(seen)) > 3


def test_two_decisions_on_one_state_record_once(planned: Path, tmp_path: Path) -> None:
    folder = copied(planned, tmp_path)
    first, second = Store(folder), Store(folder)
    created = first.recorded()[-1]
    charge = ChargedSelection(group=0, selection={"mechanism": "random"})
    assert first.append(charge, after=created, seal=b"k" * 32).number == 2
    with pytest.raises(CampaignBusy, match="in the meantime"):
        second.append(charge, after=created, seal=b"l" * 32)
    assert second.keys.read(2) == b"k" * 32
    first.close()
    second.close()


def fold_is_sound(folder: Path) -> bool:
    return state_of(folder).last >= 1


def test_a_full_disk_is_a_clear_error_and_nothing_is_lost(planned: Path, undisturbed: Path, tmp_path: Path) -> None:
    folder = copied(planned, tmp_path)
    largest = max(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    # Room for the database's first pages, not for a model.
    for limit in (largest // 2, 60_000):
        done = program("run", folder, limit=limit)
        assert done.returncode == 1
        assert any(word in done.stderr for word in ("OSError", "File too large", "disk")), done.stderr
        assert fold_is_sound(folder)
        assert not list((folder / "checkpoints").glob(".*draft"))
    reopened(folder).run()
    assert released(folder) == released(undisturbed)


def test_the_folder_moves(undisturbed: Path, planned: Path, tmp_path: Path) -> None:
    folder = copied(planned, tmp_path)
    assert program("run", folder, kill_at="train.step:3").returncode == -signal.SIGKILL
    moved = folder.rename(tmp_path / "ölders place")
    reopened(moved).run()
    assert released(moved) == released(undisturbed)
    assert all((moved / each.file).is_file() for each in state_of(moved).trained)


def test_at_least_twenty_points_are_killed_at() -> None:
    assert (
        len(set(RUN + CREATE + IMPORT + GIVE_UP + GO_ON + ENCODE + MEAN + INBOX + WORKER + SNAPSHOT))
        == len(fault_points.POINTS)
        >= 20
    )
