"""Keyed fingerprints of what every record held when the campaign was created, compared whenever a record is read.

Without them, a file that was edited, sorted or replaced could train one person's record under another's id, or one
record twice. The fingerprints never leave the folder: with the key, guesses about a record could be tested.
"""

import hashlib
import os
import shlex
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dpal.campaign.layout import CONTENTS
from dpal.data import Pool
from dpal.data.records import Positions, Records, TextRecords, Values, WrappedRecords
from dpal.errors import BadData, DamagedCampaign, MissingData, RecordsChanged
from dpal.training.progress import counted

CHUNK = 1024
_PURPOSE = b"dpal contents"
_SCHEMA = """
CREATE TABLE records (
    place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, fingerprint BLOB NOT NULL, stamp TEXT NOT NULL, unit TEXT
) STRICT;
"""


def fingerprints(values: Values, key: bytes) -> list[bytes]:
    """One fingerprint per row, over its type, shape and bytes under every name."""
    arrays = sorted(values.items()) if isinstance(values, dict) else [("", values)]
    start = _keyed(key)
    for name, array in arrays:
        start.update(repr((name, array.dtype.str, array.shape[1:])).encode())
    by_row: list[bytes] = []
    for row in range(len(arrays[0][1])):
        digest = start.copy()
        for _, array in arrays:
            digest.update(array[row].tobytes())
        by_row.append(digest.digest())
    return by_row


def text_fingerprints(texts: Iterable[Sequence[str]], key: bytes) -> list[bytes]:
    """One fingerprint per record, over its texts and their lengths, so that different records never look equal."""
    by_record: list[bytes] = []
    for record in texts:
        digest = _keyed(key)
        for text in record:
            content = text.encode()
            digest.update(len(content).to_bytes(8, "little"))
            digest.update(content)
        by_record.append(digest.digest())
    return by_record


def fingerprints_of(records: Records, positions: Positions, key: bytes) -> list[bytes]:
    """The fingerprints of the records at these positions, as the model reads them; texts before they are tokenized."""
    if isinstance(records, TextRecords):
        return text_fingerprints((records.texts[position] for position in positions.tolist()), key)
    return fingerprints(records.read(positions), key)


def stamps_of(records: Records, positions: Positions, key: bytes) -> list[str]:
    """What shows a changed record without reading it, hashed with the key: some of it depends on its contents."""
    stamps = records.stamps(positions)
    return [stamp and hashlib.blake2b(stamp.encode(), digest_size=16, key=key).hexdigest() for stamp in stamps]


def chunks(positions: Positions) -> Iterable[Positions]:
    """The positions in batches of bounded size."""
    return (positions[start : start + CHUNK] for start in range(0, len(positions), CHUNK))


def _keyed(key: bytes) -> "hashlib.blake2b":
    return hashlib.blake2b(digest_size=16, key=key, person=_PURPOSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Every record's id, fingerprint, stamp and unit, in the order of the pool that the campaign was created with."""

    ids: tuple[str, ...] = field(repr=False)
    fingerprints: tuple[bytes, ...] = field(repr=False)
    stamps: tuple[str, ...] = field(repr=False)
    key: bytes = field(repr=False)
    # None where every record is a unit by itself.
    units: tuple[str, ...] | None = field(repr=False, default=None)

    def hash(self) -> str:
        """The hash of ids, fingerprints and units. Stamps may change: the files of a copied folder have new times."""
        digest = hashlib.sha256()
        for name, fingerprint in zip(self.ids, self.fingerprints, strict=True):
            content = name.encode()
            digest.update(b"%d:%b%b" % (len(content), content, fingerprint))
        for unit in self.units or ():
            content = unit.encode()
            digest.update(b"unit %d:%b" % (len(content), content))
        return digest.hexdigest()

    def ids_are_row_numbers(self) -> bool:
        """Whether the ids look like the numbers of rows, counted from 0 or from 1."""
        count = len(self.ids)
        return any(self.ids == tuple(map(str, range(start, start + count))) for start in (0, 1))

    def write(self, folder: Path) -> None:
        """Write a new file that only the owner can read."""
        path = folder / CONTENTS
        path.touch(mode=0o600)
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.executescript(f"BEGIN; {_SCHEMA}")
            units = self.units or (None,) * len(self.ids)
            rows = zip(range(len(self.ids)), self.ids, self.fingerprints, self.stamps, units, strict=True)
            connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", rows)
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise OSError(f"{path} cannot be written ({error}). Is the disk full? Nothing was changed.") from error
        finally:
            connection.close()

    @staticmethod
    def read(folder: Path, *, key: bytes, expected: str) -> "Contents":
        """Read them from the campaign's folder. A file that differs from what was recorded is refused."""
        path = folder / CONTENTS
        try:
            # As for facts: what a killed writer left half done has to be rolled back first.
            mode = "rw" if os.access(folder, os.W_OK) and os.access(path, os.W_OK) else "ro"
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode={mode}", uri=True)
            try:
                rows = connection.execute("SELECT id, fingerprint, stamp, unit FROM records ORDER BY place").fetchall()
            finally:
                connection.close()
            ids, prints, stamps, units = zip(*rows, strict=True)
            named = None if None in units else units
            contents = Contents(ids=ids, fingerprints=prints, stamps=stamps, key=key, units=named)
            unchanged = contents.hash() == expected
        except (sqlite3.Error, ValueError, TypeError, AttributeError) as error:
            # The last two: cells of a damaged page that are empty or of another type.
            raise _damaged(path) from error
        if not unchanged:
            raise _damaged(path)
        return contents


def write_stamps(folder: Path, stamps: Mapping[str, str]) -> None:
    """Note the sizes and times of files that were just found unchanged, which saves reading them next time."""
    try:
        connection = sqlite3.connect(f"{(folder / CONTENTS).resolve().as_uri()}?mode=rw", uri=True)
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
        f"{path} is missing or differs from what the campaign recorded. Nothing was changed. Restore the campaign's "
        "folder from a backup: without this file it cannot be checked whether the records are still the same."
    )


class CheckedRecords(WrappedRecords):
    """Records that are compared with their fingerprints whenever they are read."""

    def __init__(self, contents: Contents, pool: Pool, refused: Callable[[list[str], str], RecordsChanged]) -> None:
        """The pool's ids are some or all of the campaign's. `refused` makes the error from ids and what is wrong."""
        known = dict(zip(contents.ids, zip(contents.fingerprints, contents.stamps, strict=True), strict=True))
        super().__init__(pool.records)
        self._ids, self._key = pool.ids, contents.key
        self._expected = [known[name][0] for name in pool.ids.tolist()]
        self._stamps = [known[name][1] for name in pool.ids.tolist()]
        self._refused = refused

    def read(self, positions: Positions) -> Values:
        try:
            values = self._records.read(positions)
        except (BadData, MissingData, OSError) as error:
            raise self._refused(self._unreadable(positions), "can no longer be read") from error
        if changed := self._changed(positions, fingerprints(values, self._key)):
            raise self._refused(changed, _CHANGED)
        return values

    def check(self, positions: Positions) -> None:
        """Read and compare these records; one error names all that differ."""
        changed: list[str] = []
        for batch in counted(chunks(positions), "comparing records", total=len(positions), each=CHUNK):
            try:
                changed += self._changed(batch, fingerprints_of(self._records, batch, self._key))
            except (BadData, MissingData, OSError) as error:
                raise self._refused(self._unreadable(batch), "can no longer be read") from error
        if changed:
            raise self._refused(changed, _CHANGED)

    def check_files(self) -> dict[str, str]:
        """Compare every record whose file has a new size or time since it was last compared, or that has no file.

        Returns the new stamps of those whose contents are unchanged.
        """
        now = stamps_of(self._records, np.arange(len(self)), self._key)
        suspects = [place for place, stamp in enumerate(now) if not stamp or stamp != self._stamps[place]]
        self.check(np.asarray(suspects, dtype=np.int64))
        renewed = {str(self._ids[place]): now[place] for place in suspects if now[place]}
        self._stamps = now
        return renewed

    def _changed(self, positions: Positions, actual: list[bytes]) -> list[str]:
        return [
            str(self._ids[place])
            for place, fingerprint in zip(positions.tolist(), actual, strict=True)
            if fingerprint != self._expected[place]
        ]

    def _unreadable(self, positions: Positions) -> list[str]:
        ids: list[str] = []
        for place in positions.tolist():
            try:
                self._records.read(np.asarray([place]))
            except (BadData, MissingData, OSError):
                ids.append(str(self._ids[place]))
        return ids or [str(self._ids[place]) for place in positions.tolist()]


_CHANGED = "are not as they were when the campaign was created"


def records_refused(ids: Sequence[str], what: str, *, folder: Path, row_numbers: bool, charged: str) -> RecordsChanged:
    """The error for records that are missing or changed: which, what to do, and whether anything was charged."""
    rows = " Their ids are row numbers: rows must not be sorted, added or removed." if row_numbers else ""
    return RecordsChanged(
        f"{len(ids):,} record(s) {what}: {few(ids)}.{rows} Restore them as they were. If they must not be used "
        f"any more, withdraw them permanently: dpal withdraw {shlex.quote(str(folder))} {shlex.quote(ids[0])}"
        f"{' ...' if len(ids) > 1 else ''}\n{charged}"
    )


def few(ids: Sequence[str], most: int = 5) -> str:
    """Some of the ids, and how many more there are."""
    more = f" and {len(ids) - most:,} more" if len(ids) > most else ""
    return ", ".join(repr(name) for name in ids[:most]) + more
