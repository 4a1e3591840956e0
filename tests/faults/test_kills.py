"""SIGKILL at every named point, then resume: nothing is lost, nothing is released without its charge, nothing twice."""

import csv
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from small_campaigns import RECORDS, create, reopened, small_pool

from dpal.campaign import faults
from dpal.campaign.facts import ChargedSelection, ChargedTraining
from dpal.campaign.files import digest
from dpal.campaign.folder import CampaignFolder
from dpal.campaign.state import State, fold
from dpal.campaign.store import Store
from dpal.errors import CampaignBusy, DamagedCampaign
from dpal.randomness import SealedRandomness
from dpal.selection.mechanisms import Uniform

PROGRAM = Path(__file__).parents[1] / "support" / "small_campaigns.py"
CREATE = [point for point in faults.POINTS if point.startswith("create.")]
IMPORT = [point for point in faults.POINTS if point.startswith("import.")]
# Points of a run, some of them later in its life too.
RUN = [point for point in faults.POINTS if not point.startswith(("create.", "import."))]
LATER = ["select.charged:2", "select.recorded:3", "train.charged:3", "train.step:9", "train.checkpoint-written:2"]
IN_TRANSACTIONS = [f"store.in-transaction:{number}" for number in (3, 5, 9)] + ["store.committed:4"]


def program(
    action: str, *words: object, kill_at: str | None = None, seed: int | None = 7, limit: int | None = None
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(PROGRAM.parent), "SEED": json.dumps(seed)}
    if kill_at is not None:
        environment[faults.VARIABLE] = kill_at
    return subprocess.run(
        [sys.executable, str(PROGRAM), action, *map(str, words)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else None,
    )


def state_of(folder: Path) -> State:
    store = Store(folder, read_only=True)
    try:
        return fold(store.recorded())
    finally:
        store.close()


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign that is created and not run."""
    folder = tmp_path_factory.mktemp("planned") / "campaign"
    create(folder)
    return folder


@pytest.fixture(scope="module")
def undisturbed(planned: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same campaign, run to its end in one go."""
    folder = tmp_path_factory.mktemp("undisturbed") / "campaign"
    shutil.copytree(planned, folder)
    assert reopened(folder).run().stage == "finished"
    return folder


def copied(source: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(source, tmp_path / "campaign"))


def released(state: State) -> list[object]:
    """What left the machine, without times and without numbers of facts."""
    selections = [(each.group, each.to_label, each.retired, each.threshold) for each in state.selected]
    return [selections, [(each.phase, each.sha256) for each in state.trained]]


def charged(state: State) -> list[ChargedSelection | ChargedTraining]:
    return [charge for _, charge in state.charges]


@pytest.mark.parametrize("point", RUN + LATER + IN_TRANSACTIONS)
def test_a_killed_run_resumes_as_if_nothing_had_happened(
    planned: Path, undisturbed: Path, tmp_path: Path, point: str
) -> None:
    folder = copied(planned, tmp_path)
    done = program("run", folder, kill_at=point)
    assert done.returncode == -signal.SIGKILL, done.stderr
    at_death = state_of(folder)
    spent_at_death = CampaignFolder(folder).status().epsilon_spent
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
    assert released(after) == released(expected)
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
        assert CampaignFolder(folder).status().stage == "planned"
        return
    assert not folder.exists()
    # Trying again works, and leaves nothing of the first attempt.
    assert program("create", folder).returncode == 0
    assert CampaignFolder(folder).status().stage == "planned"
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
    assert reopened(folder).run().waiting_for_labels == 40
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
    store = Store(folder, read_only=True)
    key = store.seal(2)
    store.close()
    pool = small_pool()
    expected = Uniform(query_size=40, highest=1.0).select(
        np.zeros(RECORDS), randomness=SealedRandomness(key), ids=pool.ids
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
        store = Store(folder, read_only=True)
        (charge,) = store.seals()
        keys.append(store.seal(charge))
        store.close()
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
    CampaignFolder(folder).import_labels(table, small_pool())
    for each in (folder, twin):
        reopened(each).run()
    first, second = state_of(folder).trained, state_of(twin).trained
    assert first[0].sha256 == second[0].sha256
    assert first[1].sha256 != second[1].sha256


def test_two_processes_race_and_one_runs(planned: Path, tmp_path: Path) -> None:
    folder = copied(planned, tmp_path)
    environment = os.environ | {"PYTHONPATH": str(PROGRAM.parent)}
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
            seen.append(CampaignFolder(folder).status().stage)

    nosy = reopened(folder, oracle=Nosy())  # type: ignore[arg-type]
    nosy.run()
    assert seen == ["waiting-for-labels"]
    assert campaign.run().stage == "finished"


def test_two_decisions_on_one_state_record_once(planned: Path, tmp_path: Path) -> None:
    folder = copied(planned, tmp_path)
    first, second = Store(folder), Store(folder)
    charge = ChargedSelection(group=0, selection={"mechanism": "random"})
    assert first.append(charge, after=1, seal=b"k" * 32) == 2
    with pytest.raises(CampaignBusy, match="meanwhile"):
        second.append(charge, after=1, seal=b"l" * 32)
    assert second.seal(2) == b"k" * 32
    first.close()
    second.close()


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
    assert released(state_of(folder)) == released(state_of(undisturbed))


def fold_is_sound(folder: Path) -> bool:
    return state_of(folder).last >= 1


def harmed_checkpoint(folder: Path) -> None:
    path = folder / "checkpoints/phase-1.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def missing_checkpoint(folder: Path) -> None:
    (folder / "checkpoints/phase-1.safetensors").unlink()


def half_a_page(folder: Path) -> None:
    path = folder / "campaign.db"
    content = bytearray(path.read_bytes())
    size = int.from_bytes(content[16:18], "big")
    content[size : 2 * size] = content[size : size + size // 2] + bytes(size - size // 2)
    path.write_bytes(content)


def newer_version(folder: Path) -> None:
    with sqlite3.connect(folder / "campaign.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def not_a_database(folder: Path) -> None:
    (folder / "campaign.db").write_bytes(b"hello, this is a text" * 100)


def edited_fact(folder: Path) -> None:
    with sqlite3.connect(folder / "campaign.db") as connection:
        connection.execute("DROP TRIGGER facts_stay")
        connection.execute("UPDATE facts SET body = replace(body, '\"steps\":', '\"steps\": ') WHERE number = 5")
    connection.close()


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (harmed_checkpoint, "Restore it from a backup"),
        (missing_checkpoint, "Restore it from a backup"),
        (half_a_page, "damaged|cannot be read|holds no facts|newer|no database|does not follow"),
        (newer_version, "newer dpal.*Update dpal"),
        (not_a_database, "damaged"),
        (edited_fact, "does not follow"),
    ],
)
def test_damage_is_refused_and_not_made_worse(
    planned: Path, undisturbed: Path, tmp_path: Path, harm: Callable[[Path], None], message: str
) -> None:
    folder = copied(planned, tmp_path)
    # Phase 1 is trained, and the next selection needs its model.
    assert program("run", folder, kill_at="train.recorded").returncode == -signal.SIGKILL
    with sqlite3.connect(folder / "campaign.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    backup = Path(shutil.copytree(folder, tmp_path / "backup"))
    harm(folder)
    before = {path: digest(path) for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(DamagedCampaign, match=message):
        reopened(folder).run()
    after = {path: digest(path) for path in before}
    changed = [path.name for path in before if after[path] != before[path]]
    # The lock file, and for a damaged model the record that a resumption was tried.
    allowed = {"writer.lock", "campaign.db"} if "checkpoint" in harm.__name__ else {"writer.lock"}
    assert set(changed) <= allowed
    # With the backup back in place everything goes on.
    shutil.rmtree(folder)
    shutil.copytree(backup, folder)
    reopened(folder).run()
    assert released(state_of(folder)) == released(state_of(undisturbed))


def test_facts_cannot_be_changed_or_removed(planned: Path, tmp_path: Path) -> None:
    folder = copied(planned, tmp_path)
    connection = sqlite3.connect(folder / "campaign.db")
    for statement in ("UPDATE facts SET kind = 'x'", "DELETE FROM facts"):
        with pytest.raises(sqlite3.IntegrityError, match="only ever added"):
            connection.execute(statement)
    connection.close()


def test_the_folder_moves(undisturbed: Path, planned: Path, tmp_path: Path) -> None:
    folder = copied(planned, tmp_path)
    assert program("run", folder, kill_at="train.step:3").returncode == -signal.SIGKILL
    moved = folder.rename(tmp_path / "ölders place")
    reopened(moved).run()
    assert released(state_of(moved)) == released(state_of(undisturbed))
    assert all((moved / each.file).is_file() for each in state_of(moved).trained)


def test_at_least_twenty_points_are_killed_at() -> None:
    assert len(set(RUN + CREATE + IMPORT)) == len(faults.POINTS) >= 20
