"""What every record held when the campaign was made, as keyed fingerprints that are compared whenever it is read.

Without them a file that was edited, sorted or exchanged would train one person's record under another's id, or one
record twice. The fingerprints never leave the folder: with the key, guesses about a record could be tried out.
"""

import hashlib
import os
import shlex
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dpal.data import Pool
from dpal.data.records import Form, Positions, Records, TextRecords, Values
from dpal.errors import BadData, DamagedCampaign, MissingData, RecordsChanged

NAME = "contents.db"
CHUNK = 1024
_PURPOSE = b"dpal contents"
_SCHEMA = """
CREATE TABLE records (
    place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, fingerprint BLOB NOT NULL, stamp TEXT NOT NULL
) STRICT;
"""


def fingerprints(values: Values, key: bytes) -> list[bytes]:
    """One for each row: of its kind, its shape and its bytes, under every name."""
    parts = sorted(values.items()) if isinstance(values, dict) else [("", values)]
    start = _keyed(key)
    for name, part in parts:
        start.update(repr((name, part.dtype.str, part.shape[1:])).encode())
    found: list[bytes] = []
    for row in range(len(parts[0][1])):
        digest = start.copy()
        for _, part in parts:
            digest.update(part[row].tobytes())
        found.append(digest.digest())
    return found


def text_fingerprints(texts: Iterable[Sequence[str]], key: bytes) -> list[bytes]:
    """One for each record: of its texts, each with its length, so that no two records run together."""
    found: list[bytes] = []
    for record in texts:
        digest = _keyed(key)
        for text in record:
            content = text.encode()
            digest.update(len(content).to_bytes(8, "little"))
            digest.update(content)
        found.append(digest.digest())
    return found


def fingerprints_of(records: Records, positions: Positions, key: bytes) -> list[bytes]:
    """Of the records at these positions, as the model reads them; texts before they are tokenized."""
    if isinstance(records, TextRecords):
        return text_fingerprints((records.texts[position] for position in positions.tolist()), key)
    return fingerprints(records.read(positions), key)


def stamps_of(records: Records, positions: Positions, key: bytes) -> list[str]:
    """What tells changed records without reading them, hashed with the key: some of it is about their contents."""
    found = records.stamps(positions)
    return [stamp and hashlib.blake2b(stamp.encode(), digest_size=16, key=key).hexdigest() for stamp in found]


def chunks(positions: Positions) -> Iterable[Positions]:
    """The positions, a bounded number at a time."""
    return (positions[start : start + CHUNK] for start in range(0, len(positions), CHUNK))


def _keyed(key: bytes) -> "hashlib.blake2b":
    return hashlib.blake2b(digest_size=16, key=key, person=_PURPOSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Every record's id, fingerprint and stamp, in the order of the pool that the campaign was made with."""

    ids: tuple[str, ...] = field(repr=False)
    fingerprints: tuple[bytes, ...] = field(repr=False)
    stamps: tuple[str, ...] = field(repr=False)
    key: bytes = field(repr=False)

    def hash(self) -> str:
        """Of ids and fingerprints. Stamps may change: a folder that is copied has files with new times."""
        digest = hashlib.sha256()
        for name, fingerprint in zip(self.ids, self.fingerprints, strict=True):
            content = name.encode()
            digest.update(b"%d:%b%b" % (len(content), content, fingerprint))
        return digest.hexdigest()

    def ids_are_row_numbers(self) -> bool:
        """Whether the ids look like the numbers of rows, counted from 0 or from 1."""
        count = len(self.ids)
        return any(self.ids == tuple(map(str, range(start, start + count))) for start in (0, 1))

    def write(self, folder: Path) -> None:
        """Into a new file, for the owner's eyes."""
        path = folder / NAME
        path.touch(mode=0o600)
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.executescript(f"BEGIN; {_SCHEMA}")
            rows = zip(range(len(self.ids)), self.ids, self.fingerprints, self.stamps, strict=True)
            connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?)", rows)
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise OSError(f"{path} cannot be written ({error}). Is the disk full? Nothing was changed.") from error
        finally:
            connection.close()

    @staticmethod
    def read(folder: Path, *, key: bytes, expected: str) -> "Contents":
        """From the campaign's folder. A file that is not as it was recorded is refused."""
        path = folder / NAME
        try:
            # As for facts: what a killed writer left half done has to be undone first.
            mode = "rw" if os.access(folder, os.W_OK) and os.access(path, os.W_OK) else "ro"
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode={mode}", uri=True)
            try:
                rows = connection.execute("SELECT id, fingerprint, stamp FROM records ORDER BY place").fetchall()
            finally:
                connection.close()
            ids, prints, stamps = zip(*rows, strict=True)
            found = Contents(ids=ids, fingerprints=prints, stamps=stamps, key=key)
            whole = found.hash() == expected
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise _damaged(path) from error
        if not whole:
            raise _damaged(path)
        return found


def write_stamps(folder: Path, stamps: Mapping[str, str]) -> None:
    """Note the sizes and times of files whose contents were just found unchanged. They save a reading, no more."""
    try:
        connection = sqlite3.connect(f"{(folder / NAME).resolve().as_uri()}?mode=rw", uri=True)
        try:
            with connection:
                rows = [(stamp, name) for name, stamp in stamps.items()]
                connection.executemany("UPDATE records SET stamp = ? WHERE id = ?", rows)
        finally:
            connection.close()
    except sqlite3.OperationalError:
        # Read-only, full or in use: the files are read again next time.
        return


def _damaged(path: Path) -> DamagedCampaign:
    return DamagedCampaign(
        f"{path} is missing or not as it was when the campaign was made. Nothing was changed. Restore the campaign's "
        "folder from a backup: without it nobody can tell whether the records are still the same."
    )


class CheckedRecords(Records):
    """Records that are compared with their fingerprints whenever they are read."""

    def __init__(self, contents: Contents, pool: Pool, refused: Callable[[list[str], str], RecordsChanged]) -> None:
        """The pool's ids are the campaign's, or some of them. `refused` makes the error from ids and what is wrong."""
        known = dict(zip(contents.ids, zip(contents.fingerprints, contents.stamps, strict=True), strict=True))
        self._records, self._ids, self._key = pool.records, pool.ids, contents.key
        self._expected = [known[name][0] for name in pool.ids.tolist()]
        self._stamps = [known[name][1] for name in pool.ids.tolist()]
        self._refused = refused

    def __len__(self) -> int:
        return len(self._records)

    @property
    def form(self) -> Form:
        return self._records.form

    def stamp(self) -> str:
        return self._records.stamp()

    def stamps(self, positions: Positions) -> list[str]:
        return self._records.stamps(positions)

    def read(self, positions: Positions) -> Values:
        try:
            values = self._records.read(positions)
        except (BadData, MissingData, OSError) as error:
            raise self._refused(self._unreadable(positions), "cannot be read any more") from error
        if changed := self._changed(positions, fingerprints(values, self._key)):
            raise self._refused(changed, _CHANGED)
        return values

    def check(self, positions: Positions) -> None:
        """Read and compare these records, and refuse all that differ together."""
        changed: list[str] = []
        for some in chunks(positions):
            try:
                changed += self._changed(some, fingerprints_of(self._records, some, self._key))
            except (BadData, MissingData, OSError) as error:
                raise self._refused(self._unreadable(some), "cannot be read any more") from error
        if changed:
            raise self._refused(changed, _CHANGED)

    def check_files(self) -> dict[str, str]:
        """Compare every record whose file has another size or time than when it was last compared, or has no file.

        Says the new stamps of those that are unchanged all the same.
        """
        now = stamps_of(self._records, np.arange(len(self)), self._key)
        suspects = [place for place, stamp in enumerate(now) if not stamp or stamp != self._stamps[place]]
        self.check(np.asarray(suspects, dtype=np.int64))
        renewed = {str(self._ids[place]): now[place] for place in suspects if now[place]}
        self._stamps = now
        return renewed

    def _changed(self, positions: Positions, found: list[bytes]) -> list[str]:
        return [
            str(self._ids[place])
            for place, fingerprint in zip(positions.tolist(), found, strict=True)
            if fingerprint != self._expected[place]
        ]

    def _unreadable(self, positions: Positions) -> list[str]:
        found: list[str] = []
        for place in positions.tolist():
            try:
                self._records.read(np.asarray([place]))
            except (BadData, MissingData, OSError):
                found.append(str(self._ids[place]))
        return found or [str(self._ids[place]) for place in positions.tolist()]


_CHANGED = "are not as they were when the campaign was made"


def records_refused(ids: Sequence[str], what: str, *, folder: Path, row_numbers: bool, charged: str) -> RecordsChanged:
    """The error for records that are missing or changed: which, what to do, and whether anything was charged."""
    rows = " Their ids are row numbers: rows must not be sorted, added or removed." if row_numbers else ""
    return RecordsChanged(
        f"{len(ids):,} record(s) {what}: {few(ids)}.{rows} Put them back as they were. If they must not be used "
        f"any more, withdraw them for good: dpal withdraw {shlex.quote(str(folder))} {shlex.quote(ids[0])}"
        f"{' ...' if len(ids) > 1 else ''}\n{charged}"
    )


def few(ids: Sequence[str], most: int = 5) -> str:
    """Some of the ids, and how many more there are."""
    more = f" and {len(ids) - most:,} more" if len(ids) > most else ""
    return ", ".join(repr(name) for name in ids[:most]) + more
