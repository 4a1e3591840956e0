"""A folder in which several campaigns on the same data share features, looked up by encoder and contents.

It is as private as the data: who has it can test guesses about records, and features say much about them.
"""

import hashlib
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpal.campaign.feature_files import DTYPE
from dpal.errors import BadData

_FILE = "features.db"
_BUSY_SECONDS = 60.0
_CHECK_BYTES = 16


class FeatureCache:
    """Rows by a hash of the encoder and the record's contents."""

    def __init__(self, folder: Path | str, *, width: int) -> None:
        self._path, self._width = Path(folder).expanduser() / _FILE, width
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path.touch(mode=0o600)

    def found(self, names: Sequence[bytes]) -> dict[bytes, NDArray[np.float16]]:
        """The rows that are there, by name."""
        with closing(self._opened()) as database, self._readable():
            rows = [
                database.execute("SELECT content FROM features WHERE name = ?", (name,)).fetchone() for name in names
            ]
        known = ((name, self._row(name, row[0])) for name, row in zip(names, rows, strict=True) if row is not None)
        return {name: row for name, row in known if row is not None}

    def add(self, names: Sequence[bytes], rows: NDArray[np.float16]) -> None:
        """Keep these rows, all or none."""
        entries = [(name, row.tobytes() + _check(name, row.tobytes())) for name, row in zip(names, rows, strict=True)]
        with closing(self._opened()) as database, self._readable(), database:
            database.executemany("INSERT OR REPLACE INTO features VALUES (?, ?)", entries)

    def _row(self, name: bytes, content: bytes) -> NDArray[np.float16] | None:
        """A row, or None if it is damaged."""
        numbers, check = content[:-_CHECK_BYTES], content[-_CHECK_BYTES:]
        whole = len(numbers) == self._width * DTYPE.itemsize and check == _check(name, numbers)
        return np.frombuffer(numbers, dtype=DTYPE) if whole else None

    def _opened(self) -> sqlite3.Connection:
        with self._readable():
            database = sqlite3.connect(self._path, timeout=_BUSY_SECONDS)
            database.execute(
                "CREATE TABLE IF NOT EXISTS features (name BLOB PRIMARY KEY, content BLOB NOT NULL) STRICT"
            )
        return database

    @contextmanager
    def _readable(self) -> Generator[None]:
        """Translate sqlite3 errors."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise OSError(f"{self._path}: {error}. Is the disk full or the folder read-only?") from error
        except sqlite3.DatabaseError as error:
            raise BadData(f"{self._path} is damaged. Remove it, and its features will be computed again.") from error


def _check(name: bytes, numbers: bytes) -> bytes:
    return hashlib.blake2b(name + numbers, digest_size=_CHECK_BYTES).digest()
