"""Damaged, forged, older and foreign files: each is refused with a sentence, and nothing is made worse."""

import json
import shutil
import signal
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from killed_programs import copied, program, released, state_of
from small_campaigns import RECORDS, reopened, small_pool

from dpal.campaign.campaign import Campaign
from dpal.campaign.facts import Answered
from dpal.campaign.files import digest
from dpal.campaign.store import Store, chained
from dpal.data.records import ArrayRecords
from dpal.errors import DamagedCampaign, RecordsChanged


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
