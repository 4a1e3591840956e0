"""The database: facts in one chain, added after the newest one or not at all, and never quoted in an error."""

import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest
from small_facts import charged_selection, created, selected

from dpal.campaign.facts import Answered, Evaluated, Fact
from dpal.campaign.layout import DATABASE
from dpal.campaign.step_randomness import SealedKeys
from dpal.campaign.store import Recorded, Store, chained
from dpal.errors import CampaignBusy, DamagedCampaign


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    Store.create(tmp_path, secret=b"s" * 32)
    with closing(Store(tmp_path)) as opened:
        yield opened


def added(store: Store, *facts: Fact) -> list[Recorded]:
    entries: list[Recorded] = []
    for fact in facts:
        entries.append(store.append(fact, after=entries[-1] if entries else None))
    return entries


def test_what_was_added_is_read_back_in_order(store: Store) -> None:
    entries = added(store, created(), charged_selection(), selected(2, "ä"))
    assert store.recorded() == entries
    assert [entry.number for entry in entries] == [1, 2, 3]
    assert store.recorded(after=entries[1]) == entries[2:]
    assert store.recorded(after=entries[2]) == []
    assert store.secret() == b"s" * 32


def test_a_hash_depends_on_every_part_and_on_all_before() -> None:
    parts = ("before", 2, "noon", "closed", "{}")
    others = [("", *parts[1:]), *((*parts[:i], 3 if i == 1 else "x", *parts[i + 1 :]) for i in range(1, 5))]
    assert len({chained(*parts), *(chained(*other) for other in others)}) == 6


def test_a_decision_on_an_old_state_is_not_recorded(store: Store) -> None:
    """Two workers that both saw fact 1: the second one gets nothing in."""
    (first,) = added(store, created())
    store.append(charged_selection(), after=first)
    for after in (first, None):
        with pytest.raises(CampaignBusy, match=r"has recorded fact 2 .*Nothing was changed"):
            store.append(charged_selection(), after=after)
    assert len(store.recorded()) == 2


def test_facts_are_neither_changed_nor_removed(store: Store) -> None:
    added(store, created(), charged_selection())
    for statement in ("UPDATE facts SET at = ''", "DELETE FROM facts"):
        refused = pytest.raises(sqlite3.IntegrityError, match="only ever added")
        with closing(sqlite3.connect(store.path)) as connection, refused:
            connection.execute(statement)
    assert len(store.recorded()) == 2


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO facts VALUES (0, '', 'finished', '{}', '')",
        "INSERT INTO facts VALUES (-5, '', 'finished', '{}', '')",
        "INSERT INTO facts VALUES (9, '', 'finished', '{}', '')",
        "DROP TRIGGER facts_remain; DELETE FROM facts WHERE number = 2",
        "DROP TRIGGER facts_stay; UPDATE facts SET body = replace(body, 'random', 'secret-name')",
    ],
)
def test_a_chain_that_does_not_fit_is_refused_without_quoting_it(store: Store, statement: str) -> None:
    added(store, created(), charged_selection(), selected(2, "secret-name"))
    with closing(sqlite3.connect(store.path)) as connection:
        connection.executescript(statement)
    with pytest.raises(DamagedCampaign, match="does not follow") as caught:
        store.recorded()
    assert "secret-name" not in str(caught.value)


def test_a_value_that_would_come_back_changed_is_not_recorded(store: Store) -> None:
    (first,) = added(store, created())
    with pytest.raises(TypeError, match="evaluated"):
        store.append(Evaluated(phase=0, records=1, metrics={1: 2.0}), after=first)  # type: ignore[dict-item]
    assert len(store.recorded()) == 1


def test_a_key_is_there_with_its_charge_and_gone_with_its_release(store: Store, tmp_path: Path) -> None:
    (first,) = added(store, created())
    charge = store.append(charged_selection(), after=first, seal=b"k" * 32)
    assert SealedKeys(tmp_path).read(charge.number) == b"k" * 32
    store.append(selected(2, "a"), after=charge, unseal=charge.number)
    assert SealedKeys(tmp_path).charges() == []


def test_a_reader_cannot_write_and_others_cannot_read(store: Store, tmp_path: Path) -> None:
    assert stat.S_IMODE((tmp_path / DATABASE).stat().st_mode) == 0o600
    with closing(Store(tmp_path, read_only=True)) as reader, pytest.raises(OSError, match="Nothing was recorded"):
        reader.append(created(), after=None)
    assert store.recorded() == []


def test_a_folder_or_database_that_is_not_a_campaign_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DamagedCampaign, match="is not a campaign"):
        Store(tmp_path)
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
        connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(DamagedCampaign, match="not a dpal database"):
        Store(tmp_path)


def test_answers_are_recorded_with_their_own_types(store: Store) -> None:
    answers = {"a": 1, "b": "skip", "c": (0.0, 1.0)}
    entries = added(store, created(), Answered(source="x", answers=answers))
    assert store.recorded()[1].fact.answers == answers == entries[1].fact.answers


def test_a_database_that_cannot_be_opened_or_made_is_said_in_words(tmp_path: Path, store: Store) -> None:
    """By another user, or on a full disk: no damage, and nothing that SQLite alone would say."""
    code = (
        "import os, resource, sys; from pathlib import Path; from dpal.campaign.store import Store\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try: Store.create(Path(sys.argv[1]), secret=b's' * 32)\n"
        "except OSError as error: print(error)"
    )
    new = tmp_path / "new"
    new.mkdir()
    done = subprocess.run([sys.executable, "-c", code, new], capture_output=True, text=True, check=True, timeout=60)
    assert "campaign.db: " in done.stdout
    assert "Is the disk full" in done.stdout
    with patch("sqlite3.connect", side_effect=sqlite3.OperationalError("unable to open database file")) as refused:
        refused.side_effect.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        with pytest.raises(OSError, match=r"unable to open database file\. Is the disk full"):
            Store(tmp_path)
