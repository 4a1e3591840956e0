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
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from small_campaigns import RECORDS, create, reopened, small_pool

from dpal.campaign import fault_points
from dpal.campaign.campaign import Campaign
from dpal.campaign.facts import Answered, ChargedSelection, ChargedTraining
from dpal.campaign.files import digest
from dpal.campaign.state import State, fold
from dpal.campaign.step_randomness import SealedKeys
from dpal.campaign.store import Store, chained
from dpal.data.records import ArrayRecords
from dpal.errors import CampaignBusy, DamagedCampaign, RecordsChanged
from dpal.randomness import SealedRandomness
from dpal.selection import RandomSelection

PROGRAM = Path(__file__).parents[1] / "support" / "small_campaigns.py"
# Added to what is there: the package may be imported from a folder that only this variable names.
PATH = os.pathsep.join(filter(None, [str(PROGRAM.parent), os.environ.get("PYTHONPATH")]))
CREATE = [point for point in fault_points.POINTS if point.startswith("create.")]
IMPORT = [point for point in fault_points.POINTS if point.startswith("import.")]
# Killed in tests/faults/test_giving_up.py.
GIVE_UP = [point for point in fault_points.POINTS if point.startswith("give-up.")]
# Points of a run, some of them later in its life too.
RUN = [point for point in fault_points.POINTS if not point.startswith(("create.", "import.", "give-up."))]
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


def program(
    action: str, *words: object, kill_at: str | None = None, seed: int | None = 7, limit: int | None = None
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": PATH, "SEED": json.dumps(seed)}
    if kill_at is not None:
        environment[fault_points.VARIABLE] = kill_at
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


def released(folder: Path) -> list[object]:
    """What left the machine: who was selected, and every model's weights, bit for bit."""
    state = state_of(folder)
    selections = [(each.group, each.to_label, each.retired, each.threshold) for each in state.selected]
    return [selections, [weights(folder / each.file) for each in state.trained]]


def weights(file: Path) -> dict[str, bytes]:
    return {name: each.tobytes() for name, each in sorted(load_file(file).items())}


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


def older_version(folder: Path) -> None:
    with sqlite3.connect(folder / "campaign.db") as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()


def not_a_database(folder: Path) -> None:
    (folder / "campaign.db").write_bytes(b"hello, this is a text" * 100)


def edited_fact(folder: Path) -> None:
    with sqlite3.connect(folder / "campaign.db") as connection:
        (trigger,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'facts_stay'").fetchone()
        connection.execute("DROP TRIGGER facts_stay")
        connection.execute("UPDATE facts SET body = replace(body, '\"steps\":', '\"steps\": ') WHERE number = 5")
        connection.execute(trigger)
    connection.close()


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (harmed_checkpoint, "Restore it from a backup"),
        (missing_checkpoint, "Restore it from a backup"),
        (half_a_page, "damaged|cannot be read|holds no facts|newer|not a dpal database|does not follow"),
        (newer_version, "newer dpal.*Update dpal"),
        (older_version, "older dpal.*Finish the campaign with the dpal that created it"),
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
    backup = Path(shutil.copytree(folder, tmp_path / "backup"))
    harm(folder)
    lock = ("writer.lock", "writer.json")
    before = {path: digest(path) for path in folder.rglob("*") if path.is_file() and path.name not in lock}
    with pytest.raises(DamagedCampaign, match=message):
        reopened(folder).run()
    assert {path: digest(path) for path in before} == before
    # With the backup back in place everything goes on.
    shutil.rmtree(folder)
    shutil.copytree(backup, folder)
    reopened(folder).run()
    assert released(folder) == released(undisturbed)


def test_an_older_database_is_noticed(planned: Path, tmp_path: Path) -> None:
    """Going on from it would select and train a second time on charges that were paid once."""
    folder = copied(planned, tmp_path)
    assert program("run", folder, kill_at="train.charged").returncode == -signal.SIGKILL
    older = (folder / "campaign.db").read_bytes()
    reopened(folder).run()
    (folder / "campaign.db").write_bytes(older)
    for attempt in (lambda: reopened(folder).run(), lambda: Campaign(folder).verify()):
        with pytest.raises(DamagedCampaign, match="older than the folder"):
            attempt()
    # With the note gone as well, the model that lies there still tells.
    facts = state_of(folder)
    (folder / "campaign.head").write_text(json.dumps({"number": facts.last, "hash": facts.last_hash}))
    assert not Campaign(folder).verify().holds


def test_a_model_that_was_written_is_recorded_and_not_trained_again(planned: Path, tmp_path: Path) -> None:
    """It may have been seen: another one on the same charge and noise would tell about the records that differ."""
    folder = copied(planned, tmp_path)
    assert program("run", folder, kill_at="train.checkpoint-written").returncode == -signal.SIGKILL
    model = folder / "checkpoints/phase-1.safetensors"
    before = model.read_bytes()
    changed = small_pool()
    images = changed.records.read(np.arange(RECORDS)).copy()
    images[:, :, 0, 0] ^= 255
    other = replace(changed, records=ArrayRecords(images))
    with pytest.raises(RecordsChanged, match="150 record"):
        Campaign.open(folder, pool=other, evaluation=small_pool("test", 60), evaluation_is_public=True)
    reopened(folder).run()
    assert model.read_bytes() == before
    assert state_of(folder).trained[0].sha256 == digest(model)


def test_a_changed_configuration_is_refused(planned: Path, tmp_path: Path) -> None:
    folder = copied(planned, tmp_path)
    text = (folder / "campaign.yaml").read_text()
    for old, new in (("learning_rate: 0.002", "learning_rate: 0.2"), ("max_grad_norm: 1.0", "max_grad_norm: 9.0")):
        assert old in text
        (folder / "campaign.yaml").write_text(text.replace(old, new))
        with pytest.raises(DamagedCampaign, match="differs from"):
            reopened(folder)
        assert not Campaign(folder).verify().holds


def test_the_published_hash_does_not_tell_a_guessed_label(planned: Path, tmp_path: Path) -> None:
    """The same answers twice give different hashes, so nobody can try them out."""
    salts = []
    for name in ("one", "two"):
        folder = Path(shutil.copytree(planned, tmp_path / name))
        reopened(folder).run()
        store = Store(folder, read_only=True)
        salts += [each.fact.salt for each in store.recorded() if isinstance(each.fact, Answered)]
        store.close()
    assert len(set(salts)) == len(salts) == 6
    assert all(len(salt) == 64 for salt in salts)


def rewritten(folder: Path, change: Callable[[list[list[str]]], None]) -> None:
    """A forger with all means: triggers dropped, facts changed, the chain and the note computed anew."""
    connection = sqlite3.connect(folder / "campaign.db")
    rows = [list(row) for row in connection.execute("SELECT at, kind, body FROM facts ORDER BY number")]
    change(rows)
    triggers = [row[0] for row in connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger'")]
    connection.execute("DROP TRIGGER facts_stay")
    connection.execute("DROP TRIGGER facts_remain")
    connection.execute("DELETE FROM facts")
    previous = ""
    for number, (at, kind, body) in enumerate(rows, start=1):
        previous = chained(previous, number, at, kind, body)
        connection.execute("INSERT INTO facts VALUES (?, ?, ?, ?, ?)", (number, at, kind, body, previous))
    for trigger in triggers:
        connection.execute(trigger)
    connection.commit()
    connection.close()
    (folder / "campaign.head").write_text(json.dumps({"number": len(rows), "hash": previous}))


def places(rows: list[list[str]], kind: str) -> list[int]:
    return [place for place, row in enumerate(rows) if row[1] == kind]


def edited(rows: list[list[str]], kind: str, old: str, new: str) -> None:
    place = places(rows, kind)[-1]
    assert old in rows[place][2], rows[place][2][:200]
    rows[place][2] = rows[place][2].replace(old, new, 1)


FORGERIES: dict[str, Callable[[list[list[str]]], None]] = {
    "finished early": lambda rows: rows.__delitem__(slice(places(rows, "charged-training")[-1], -1)),
    "finished twice": lambda rows: rows.append(rows[-1]),
    "trained before it was labelled": lambda rows: rows.insert(
        places(rows, "charged-training")[0] + 2, rows.pop(places(rows, "answered")[0])
    ),
    "less noise": lambda rows: edited(rows, "charged-training", '"noise_multiplier":', '"noise_multiplier":1'),
    "one more selected": lambda rows: edited(
        rows, "selected", '"to_label":[', '"to_label":["digit-9999","digit-9998",'
    ),
    "selected twice": lambda rows: edited(rows, "selected", '"retired":[', '"retired":["digit-0000","digit-0000"'),
    "an answer outside": lambda rows: edited(rows, "answered", '":', '":99,"x":'),
    "a model elsewhere": lambda rows: edited(rows, "trained", "checkpoints/", "../"),
    "another model": lambda rows: edited(rows, "trained", '"sha256":"', '"sha256":"0'),
    "a resumption of nothing": lambda rows: rows.insert(-1, [rows[-1][0], "resumed", '{"charge":2}']),
    "a charge removed": lambda rows: rows.pop(places(rows, "charged-training")[-1]),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_facts_do_not_verify(undisturbed: Path, tmp_path: Path, name: str) -> None:
    folder = copied(undisturbed, tmp_path)
    rewritten(folder, lambda rows: None)
    assert Campaign(folder).verify().holds
    rewritten(folder, FORGERIES[name])
    try:
        holds = Campaign(folder).verify().holds
    except DamagedCampaign:
        holds = False
    assert not holds


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
    assert released(moved) == released(undisturbed)
    assert all((moved / each.file).is_file() for each in state_of(moved).trained)


def test_at_least_twenty_points_are_killed_at() -> None:
    assert len(set(RUN + CREATE + IMPORT + GIVE_UP)) == len(fault_points.POINTS) >= 20
