"""The campaign's database: facts, each chained to the one before by a hash."""

import hashlib
import os
import sqlite3
from collections.abc import Generator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dpal.campaign import fault_points
from dpal.campaign.facts import Fact, from_text, to_text
from dpal.campaign.layout import DATABASE
from dpal.campaign.step_randomness import SealedKeys
from dpal.errors import CampaignBusy, DamagedCampaign

SCHEMA_VERSION = 7
# "dpal" in ASCII, by which tools recognise the file.
_APPLICATION = 0x6470616C
_BUSY_SECONDS = 10.0
# Of SQLite's whole numbers: every row counts, also one that someone put in front.
_SMALLEST = -(2**63)
_SCHEMA = """
CREATE TABLE facts (
    number INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL
) STRICT;
-- One random key for the whole campaign. It would let people test guesses about contents, so it is never released.
CREATE TABLE secret (key BLOB NOT NULL) STRICT;
CREATE TRIGGER facts_stay BEFORE UPDATE ON facts BEGIN SELECT RAISE(ABORT, 'facts are only ever added'); END;
CREATE TRIGGER facts_remain BEFORE DELETE ON facts BEGIN SELECT RAISE(ABORT, 'facts are only ever added'); END;
-- For people with an SQL shell.
CREATE VIEW ledger AS SELECT number, at, kind, body FROM facts WHERE kind LIKE 'charged-%';
CREATE VIEW selections AS
    SELECT facts.number, at, json_extract(body, '$.group') AS "group", record.value AS id
    FROM facts, json_each(body, '$.to_label') AS record WHERE kind = 'selected';
CREATE VIEW labels AS
    SELECT facts.number, at, json_extract(body, '$.source') AS source, answer.key AS id, answer.value AS answer
    FROM facts, json_each(body, '$.answers') AS answer WHERE kind = 'answered';
"""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A fact, its number and when it was recorded."""

    number: int
    at: str
    fact: Fact
    hash: str


def chained(previous: str, number: int, at: str, kind: str, body: str) -> str:
    """The hash that ties a fact to all before it."""
    return hashlib.sha256("\n".join((previous, str(number), at, kind, body)).encode()).hexdigest()


class Store:
    """A connection to the database. Readers may read while a writer writes."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.path = folder / DATABASE
        self.keys = SealedKeys(folder)
        if not self.path.is_file():
            raise DamagedCampaign(f"{folder} is not a campaign: it has no {DATABASE}. Make one with dpal init.")
        # A reader may have to roll back what a killed writer left half done, so it opens for writing if it can.
        mode = "rw" if os.access(folder, os.W_OK) and os.access(self.path, os.W_OK) else "ro"
        with self._readable():
            self._connection = sqlite3.connect(
                f"{self.path.resolve().as_uri()}?mode={mode}", uri=True, timeout=_BUSY_SECONDS, isolation_level=None
            )
        # Texts are decoded here: the library's own errors would quote private answers.
        self._connection.text_factory = bytes
        try:
            self._check()
            _prepare(self._connection, read_only=read_only)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def create(folder: Path, *, secret: bytes) -> None:
        """A new database with the campaign's key, and no facts."""
        path = folder / DATABASE
        # Only the owner may read labels.
        path.touch(mode=0o600)
        with _in_words(path), closing(sqlite3.connect(path, isolation_level=None)) as connection:
            # No write-ahead log: the newest facts would be in a second file, which can get lost or stay behind.
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.executescript(
                f"BEGIN; PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {SCHEMA_VERSION}; "
                f"{_SCHEMA} COMMIT;"
            )
            connection.execute("INSERT INTO secret VALUES (?)", (secret,))

    def _check(self) -> None:
        """Refuse a damaged file, another program's, or a newer dpal's, before anything is written."""
        with self._readable():
            application = self._one("PRAGMA application_id")
            version = int(self._one("PRAGMA user_version"))
            if application != _APPLICATION:
                raise DamagedCampaign(f"{self.path} is not a dpal database. Nothing was changed.")
            if version < SCHEMA_VERSION:
                raise DamagedCampaign(
                    f"{self.path} was written by an older dpal (its version {version}, this dpal writes "
                    f"{SCHEMA_VERSION}), whose plans this dpal cannot read. Finish the campaign with the dpal that "
                    "created it. Nothing was changed."
                )
            if version > SCHEMA_VERSION:
                raise DamagedCampaign(
                    f"{self.path} was written by a newer dpal (its version {version}, this dpal knows "
                    f"{SCHEMA_VERSION}). Update dpal: pip install --upgrade dpal. Nothing was changed."
                )
            if self._one("PRAGMA quick_check(1)") != b"ok" or self._missing_parts():
                raise DamagedCampaign(f"{self.path} is damaged. {_RESTORE}")

    def _one(self, query: str) -> bytes | int:
        return self._connection.execute(query).fetchone()[0]

    def _missing_parts(self) -> bool:
        names = {row[0].decode() for row in self._connection.execute("SELECT name FROM sqlite_schema")}
        return not {"facts", "secret", "facts_stay", "facts_remain"} <= names

    def _readable(self) -> AbstractContextManager[None]:
        return _in_words(self.path)

    def recorded(self, *, after: Recorded | None = None) -> list[Recorded]:
        """All facts in order, or only those after one that was read before. A broken chain is refused."""
        with self._readable():
            query = "SELECT number, at, kind, body, hash FROM facts WHERE number >= ? ORDER BY number"
            rows = self._connection.execute(query, (_SMALLEST if after is None else after.number,)).fetchall()
        position, previous = 1, ""
        if after is not None:
            if not rows or (int(rows[0][0]), bytes(rows[0][4])) != (after.number, after.hash.encode()):
                raise DamagedCampaign(
                    f"Fact {after.number} in {self.path} is missing or different from before: someone replaced or "
                    f"changed the database. {_RESTORE}"
                )
            position, previous, rows = after.number + 1, after.hash, rows[1:]
        facts: list[Recorded] = []
        for expected, row in enumerate(rows, start=position):
            number = int(row[0])
            try:
                at, kind, body, hashed = (bytes(cell).decode("utf-8") for cell in row[1:])
            except UnicodeDecodeError as error:
                raise DamagedCampaign(f"Fact {number} in {self.path} is damaged. {_RESTORE}") from error
            previous = chained(previous, number, at, kind, body)
            if previous != hashed or number != expected:
                raise DamagedCampaign(
                    f"Fact {number} in {self.path} does not follow from the facts before it: someone changed the "
                    f"database. {_RESTORE}"
                )
            facts.append(Recorded(number, at, from_text(kind, body), hashed))
        return facts

    def append(
        self, fact: Fact, *, after: Recorded | None, seal: bytes | None = None, unseal: int | None = None
    ) -> Recorded:
        """Record a fact as the next one after `after`, or as the first; all or nothing.

        A sealed key is on the disk before its charge is committed, and is erased right after its release is. If another
        fact was recorded in the meantime, nothing is recorded: the decision was based on an old state.
        """
        body = to_text(fact)
        if from_text(fact.kind, body) != fact:
            raise TypeError(f"A fact of the kind {fact.kind} holds values that JSON cannot represent exactly.")
        with self._readable():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                row = self._connection.execute("SELECT number, hash FROM facts ORDER BY number DESC LIMIT 1").fetchone()
                last = (0, "") if row is None else (int(row[0]), bytes(row[1]).decode())
                if last != ((0, "") if after is None else (after.number, after.hash)):
                    raise CampaignBusy(
                        f"Another process has recorded fact {last[0]} in {self.path} in the meantime. Nothing was "
                        "changed; run the command again."
                    )
                number, at = last[0] + 1, datetime.now(UTC).isoformat(timespec="milliseconds")
                hashed = chained(last[1], number, at, fact.kind, body)
                self._connection.execute(
                    "INSERT INTO facts VALUES (?, ?, ?, ?, ?)", (number, at, fact.kind, body, hashed)
                )
                if seal is not None:
                    self.keys.write(number, seal)
                fault_points.reached("store.in-transaction")
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        fault_points.reached("store.committed")
        if unseal is not None:
            self.keys.erase(unseal)
        return Recorded(number, at, fact, hashed)

    def secret(self) -> bytes:
        """The campaign's own key, for fingerprints and opaque names. It is never released."""
        with self._readable():
            row = self._connection.execute("SELECT key FROM secret").fetchone()
        if row is None:
            raise DamagedCampaign(f"The key of the campaign is not in {self.path}. {_RESTORE}")
        return bytes(row[0])

    def close(self) -> None:
        self._connection.close()


_RESTORE = "Nothing was changed. Restore the campaign's folder from a backup; a damaged record must not be guessed at."


@contextmanager
def _in_words(path: Path) -> Generator[None]:
    """Translate sqlite3 errors."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise CampaignBusy(
                f"Another process has kept {path} locked for {_BUSY_SECONDS:g} seconds. Nothing was changed; try again."
            ) from error
        raise OSError(f"{path}: {error}. Is the disk full or the folder read-only? Nothing was recorded.") from error
    except sqlite3.DatabaseError as error:
        raise DamagedCampaign(f"{path} is damaged ({error.sqlite_errorname}). {_RESTORE}") from error


def _prepare(connection: sqlite3.Connection, *, read_only: bool) -> None:
    """Make every commit durable, including the folder's entry."""
    connection.execute("PRAGMA synchronous = EXTRA")
    if read_only:
        connection.execute("PRAGMA query_only = ON")
