"""The inbox keeps every answer once, whoever else has it open, and never uses a number twice."""

import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from dpal.campaign.inbox import Inbox
from dpal.errors import DamagedCampaign, InvalidArgument

KEY = "key-00000000"


def add(inbox: Inbox, key: str = KEY, above: int = 0, person: str = "A", **body) -> int:
    return inbox.add({"kind": "answer"} | body, person=person, key=key, above=above).number


def test_entries_come_back_in_order(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    assert inbox.after(0) == []
    assert [add(inbox, f"key-{number}", answer=number) for number in range(3)] == [1, 2, 3]
    assert [entry.body["answer"] for entry in Inbox(tmp_path).after(1)] == [1, 2]
    first = inbox.after(0)[0]
    assert (first.number, first.person) == (1, "A") and first.at.startswith("20")


def test_an_answer_that_is_sent_again_is_saved_once(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    assert add(inbox, answer=1) == add(inbox, answer=1) == 1
    assert len(inbox.after(0)) == 1
    # Another person's key of the same name is another key.
    assert add(inbox, person="B", answer=0) == 2
    with pytest.raises(InvalidArgument, match="used for another answer"):
        add(inbox, answer=0)


def test_numbers_go_on_above_what_was_taken_in(tmp_path: Path) -> None:
    """An older copy of the file was restored: its numbers were used before."""
    inbox = Inbox(tmp_path)
    assert add(inbox, above=17) == 18
    assert add(inbox, "key-another", above=0) == 19


def test_only_the_owner_may_read_it_and_entries_stay(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    add(inbox)
    assert stat.S_IMODE(inbox.path.stat().st_mode) == 0o600
    connection = sqlite3.connect(inbox.path)
    for statement in ("DELETE FROM entries", "UPDATE entries SET person = 'B'"):
        with pytest.raises(sqlite3.IntegrityError, match="only added"):
            connection.execute(statement)
    connection.close()


def test_the_newest_number_and_what_is_there(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    assert inbox.newest() == 0 and inbox.keys() == set()
    inbox.path.touch()
    assert inbox.newest() == 0 and inbox.keys() == set()
    add(inbox, above=4)
    assert inbox.newest() == 5 and inbox.keys() == {KEY}


def test_many_writers_at_once(tmp_path: Path) -> None:
    def write(person: int) -> None:
        inbox = Inbox(tmp_path)
        for number in range(20):
            add(inbox, f"key-{number}-more", person=str(person))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(8)))
    numbers = [entry.number for entry in Inbox(tmp_path).after(0)]
    assert numbers == list(range(1, 161))


def test_a_file_that_was_only_begun_is_finished(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    inbox.path.touch()
    assert inbox.after(0) == []
    assert add(inbox) == 1


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    inbox.path.write_bytes(b"not a database, but long enough to look at" * 100)
    with pytest.raises(DamagedCampaign, match="damaged"):
        add(inbox)
    inbox.path.unlink()
    connection = sqlite3.connect(inbox.path)
    connection.execute("CREATE TABLE other (x)")
    connection.close()
    for use in (lambda: add(inbox), lambda: inbox.after(0)):
        with pytest.raises(DamagedCampaign, match="not dpal's inbox"):
            use()


def test_an_entry_that_cannot_be_read_is_damage_and_is_not_quoted(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    inbox.add({"answer": "private"}, person="A", key="k", above=0)
    content = inbox.path.read_bytes()
    inbox.path.write_bytes(content.replace(b'{"answer": "private"}', b'{"answer: "private"}}'))
    with pytest.raises(DamagedCampaign, match=r"entry 1 is not as it was saved") as error:
        inbox.after(0)
    assert "private" not in str(error.value) and error.value.__cause__ is None


def test_an_entry_that_changed_on_the_disk_is_refused(tmp_path: Path) -> None:
    """One bit makes another answer of it, and SQLite does not notice."""
    inbox = Inbox(tmp_path)
    add(inbox, answer=1)
    whole = inbox.path.read_bytes()
    place = whole.index(b'"answer": 1') + len(b'"answer": ')
    inbox.path.write_bytes(whole[:place] + b"0" + whole[place + 1 :])
    with pytest.raises(DamagedCampaign, match=r"entry 1 is not as it was saved.*backup"):
        inbox.after(0)
    # Wherever a block of zeros lies, it is found, or nothing is different.
    for start in range(0, len(whole), 512):
        inbox.path.write_bytes(whole[:start] + bytes(512) + whole[start + 512 :])
        try:
            assert [entry.body["answer"] for entry in inbox.after(0)] == [1]
        except (DamagedCampaign, OSError):
            continue


def test_entries_of_an_earlier_version_have_no_checksum(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    add(inbox, "key-00000001", answer=1)
    with closing(sqlite3.connect(inbox.path, isolation_level=None)) as connection:
        connection.execute("DROP TABLE checks")
    assert [entry.body["answer"] for entry in inbox.after(0)] == [1]
    add(inbox, "key-00000002", answer=0)
    assert [entry.body["answer"] for entry in inbox.after(0)] == [1, 0]
