"""The inbox: answers from the labelling page and changes of who labels, safe on the disk while another process writes.

`dpal run` holds the campaign for as long as a phase trains. People go on labelling: their answers wait here, each with
a number, until the writer takes them into the campaign's facts. Entries are only ever added.
"""

import hashlib
import json
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from dpal.campaign import fault_points
from dpal.campaign.layout import INBOX
from dpal.errors import CampaignBusy, DamagedCampaign, DpalError, InvalidArgument

_BUSY_SECONDS = 10.0
# "dpin" in ASCII.
_APPLICATION = 0x6470696E
_SCHEMA = (
    f"PRAGMA application_id = {_APPLICATION}",
    """CREATE TABLE entries (
        number INTEGER PRIMARY KEY, at TEXT NOT NULL, person TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL,
        UNIQUE (person, key)
    ) STRICT""",
    "CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are only added'); END",
    "CREATE TRIGGER entries_remain BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are only added'); END",
)
# In a table of their own: an inbox that an earlier version made has none for its first entries.
_CHECKS = "CREATE TABLE IF NOT EXISTS checks (number INTEGER PRIMARY KEY, sha256 TEXT NOT NULL) STRICT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something that waits to be taken in. `person` is empty for whoever runs the campaign."""

    number: int
    at: str
    person: str
    body: Mapping[str, Any] = field(repr=False)


class Inbox:
    """The inbox of one campaign. Safe to use from several processes, each with its own."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / INBOX

    def add(self, body: Mapping[str, Any], *, person: str, key: str, above: int) -> Entry:
        """Add an entry and return it once it is on the disk. The same person's same key again returns the first one.

        Its number is above `above`, the last one that was taken in: also where an older copy of the file was restored.
        """
        text = json.dumps(body, ensure_ascii=False, sort_keys=True, allow_nan=False)
        # Only the owner may read answers.
        self.path.touch(mode=0o600)
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                _make_tables(connection, self.path)
                row = connection.execute(
                    "SELECT number, at, person, body FROM entries WHERE person = ? AND key = ?", (person, key)
                ).fetchone()
                if row is None:
                    newest = connection.execute("SELECT max(number) FROM entries").fetchone()[0] or 0
                    row = (max(newest, above) + 1, datetime.now(UTC).isoformat(timespec="milliseconds"), person, text)
                    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", (*row[:3], key, text))
                    connection.execute(_CHECKS)
                    connection.execute("INSERT INTO checks VALUES (?, ?)", (row[0], _check(row)))
                elif row[3] != text:
                    raise InvalidArgument("the key", key, "new for a new answer: this one was used for another answer")
                fault_points.reached("inbox.in-transaction")
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            entry = _entry(row)
        fault_points.reached("inbox.committed")
        return entry

    def keys(self) -> set[str]:
        """The keys of all entries, whoever's they are."""
        if not self.path.exists():
            return set()
        with self._open() as connection:
            if not _has_tables(connection, self.path):
                return set()
            return {key for (key,) in connection.execute("SELECT key FROM entries")}

    def after(self, number: int) -> list[Entry]:
        """The entries above this number, in order."""
        if not self.path.exists():
            return []
        with self._open() as connection:
            if not _has_tables(connection, self.path):
                return []
            # Both as of one moment.
            connection.execute("BEGIN")
            rows = connection.execute(
                "SELECT number, at, person, body FROM entries WHERE number > ? ORDER BY number", (number,)
            ).fetchall()
            _require_unchanged(rows, _checks(connection, number), self.path)
            return [_entry(row) for row in rows]

    def newest(self) -> int:
        """The number of the newest entry; 0 without any. Asked of the database: clocks of file systems are coarse."""
        if not self.path.exists():
            return 0
        with self._open() as connection:
            if not _has_tables(connection, self.path):
                return 0
            return int(connection.execute("SELECT max(number) FROM entries").fetchone()[0] or 0)

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(
                f"{self.path.resolve().as_uri()}?mode=rw", uri=True, timeout=_BUSY_SECONDS, isolation_level=None
            )
        except sqlite3.OperationalError as error:
            raise OSError(f"{self.path} cannot be opened ({error}).") from error
        try:
            # One file, as for facts: with a write-ahead log a copy could miss the newest answers.
            connection.execute("PRAGMA synchronous = EXTRA")
            yield connection
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise CampaignBusy(f"{self.path} was locked for {_BUSY_SECONDS:g} seconds. Try again.") from error
            raise OSError(
                f"{self.path}: {error}. Is the disk full or the folder read-only? The answer was not saved."
            ) from error
        except (sqlite3.DatabaseError, ValueError, TypeError) as error:
            if isinstance(error, DpalError):
                raise
            why = error.sqlite_errorname if isinstance(error, sqlite3.DatabaseError) else "an entry cannot be read"
            # Not chained: the library's own error would quote a private answer.
            raise DamagedCampaign(
                f"{self.path} is damaged ({why}). Restore it from a backup. Nothing was changed."
            ) from (error if isinstance(error, sqlite3.DatabaseError) else None)
        finally:
            connection.close()


def _has_tables(connection: sqlite3.Connection, path: Path) -> bool:
    """False for a file that was just made, perhaps by a process that was killed then."""
    if connection.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION:
        return True
    if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        raise DamagedCampaign(f"{path} is not dpal's inbox. Nothing was changed.")
    return False


def _make_tables(connection: sqlite3.Connection, path: Path) -> None:
    if not _has_tables(connection, path):
        for statement in _SCHEMA:
            connection.execute(statement)


def _check(row: Sequence[object]) -> str:
    """What shows that an entry is as it was saved."""
    return hashlib.sha256("\n".join(str(cell) for cell in row[:4]).encode()).hexdigest()


def _checks(connection: sqlite3.Connection, after: int) -> dict[int, str]:
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'checks'").fetchone() is None:
        return {}
    return dict(connection.execute("SELECT number, sha256 FROM checks WHERE number > ?", (after,)))


def _require_unchanged(rows: Sequence[tuple[int, str, str, str]], checks: Mapping[int, str], path: Path) -> None:
    """Refuse entries that are lost, or of which a bit has changed on the disk: an answer would be another one."""
    known = {row[0]: _check(row) for row in rows}
    # An entry without a checksum is from an earlier version, which may still be serving.
    for number, check in sorted(checks.items()):
        if known.get(number) != check:
            raise DamagedCampaign(
                f"{path} is damaged (entry {number} is not as it was saved). Restore it from a backup. Nothing was "
                "changed."
            )


def _entry(row: tuple[int, str, str, str]) -> Entry:
    return Entry(number=row[0], at=row[1], person=row[2], body=cast("dict[str, Any]", json.loads(row[3])))
