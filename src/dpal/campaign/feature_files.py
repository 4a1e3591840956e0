"""Features on the disk: one row per record, and a tag per row that ties it to its record and its encoder.

A row counts only if its tag fits, so nothing has to be written at once: what a killed process left half done, a damaged
file or one of another campaign is simply computed again.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpal.campaign import fault_points
from dpal.data.records import ArrayRecords, Positions, Records

# Half precision: the noise of private training is far above its rounding.
DTYPE = np.dtype("<f2")
_TAG_BYTES = 16
_LARGEST = float(np.finfo(DTYPE).max)


def stored(rows: NDArray[np.float32]) -> NDArray[np.float16]:
    """Rows as they are kept. What is too large for half precision becomes the largest number."""
    return np.clip(rows, -_LARGEST, _LARGEST).astype(DTYPE)


class FeatureFile:
    """The rows of some records, in their order."""

    def __init__(self, path: Path, *, identity: str, width: int, fingerprints: Sequence[bytes], key: bytes) -> None:
        """`identity` is the encoder's; `fingerprints` are the records', made with the campaign's `key`."""
        self._rows, self._tags = path, path.with_suffix(".tags")
        self._shape = (len(fingerprints), width)
        self._fingerprints, self._key, self._identity = fingerprints, key, bytes.fromhex(identity)

    def missing(self, wanted: Positions) -> Positions:
        """Those of these rows that are not there, are damaged, or belong to other records or another encoder."""
        rows, tags = self._read_rows(), self._read_tags()
        if rows is None or tags is None:
            return wanted
        return np.asarray(
            [place for place in wanted.tolist() if tags[place] != self._tag(place, rows[place])], dtype=int
        )

    def left_over(self, unwanted: Positions) -> Positions:
        """Those of these rows that still hold something."""
        rows = self._read_rows()
        return unwanted[:0] if rows is None else unwanted[rows[unwanted].astype(bool).any(axis=1)]

    def prepare(self) -> None:
        """Make files of the right form, if there are none. Only the owner can read them."""
        if self._read_rows() is None:
            self._rows.unlink(missing_ok=True)
            self._rows.touch(mode=0o600)
            with self._rows.open("rb+") as file:
                header = {"descr": np.lib.format.dtype_to_descr(DTYPE), "fortran_order": False, "shape": self._shape}
                np.lib.format.write_array_header_1_0(file, header)
                file.truncate(file.tell() + DTYPE.itemsize * self._shape[0] * self._shape[1])
        if self._read_tags() is None:
            self._tags.unlink(missing_ok=True)
            self._tags.touch(mode=0o600)
            os.truncate(self._tags, _TAG_BYTES * self._shape[0])

    def write(self, places: Positions, rows: NDArray[np.float16]) -> None:
        """Put these rows in their places, and then their tags."""
        if not len(places):
            return
        start = self._rows.stat().st_size - DTYPE.itemsize * self._shape[0] * self._shape[1]
        # Written as plain files: on a full disk, writing to a memory map would kill the process silently.
        with self._rows.open("rb+") as file:
            for place, row in zip(places.tolist(), rows, strict=True):
                file.seek(start + place * row.nbytes)
                file.write(row.tobytes())
            file.flush()
            os.fsync(file.fileno())
        fault_points.reached("encode.rows-written")
        with self._tags.open("rb+") as file:
            for place, row in zip(places.tolist(), rows, strict=True):
                file.seek(place * _TAG_BYTES)
                file.write(self._tag(place, row))
            file.flush()
            os.fsync(file.fileno())

    def blank(self, places: Positions) -> None:
        """Overwrite these rows with zeros: nothing of withdrawn records stays."""
        self.write(places, np.zeros((len(places), self._shape[1]), dtype=DTYPE))

    def records(self) -> Records:
        """All rows, read from the disk when they are needed."""
        return ArrayRecords(np.load(self._rows, mmap_mode="r", allow_pickle=False))

    def _tag(self, place: int, row: NDArray[np.float16]) -> bytes:
        digest = hashlib.blake2b(digest_size=_TAG_BYTES, key=self._key, person=b"dpal features")
        digest.update(self._identity + self._fingerprints[place] + row.tobytes())
        return digest.digest()

    def _read_rows(self) -> NDArray[np.float16] | None:
        """The rows as a memory map, or None if there is no file of this form."""
        try:
            rows = np.load(self._rows, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        return rows if (rows.shape, rows.dtype) == (self._shape, DTYPE) else None

    def _read_tags(self) -> list[bytes] | None:
        try:
            content = self._tags.read_bytes()
        except OSError:
            return None
        if len(content) != _TAG_BYTES * self._shape[0]:
            return None
        return [content[start : start + _TAG_BYTES] for start in range(0, len(content), _TAG_BYTES)]
