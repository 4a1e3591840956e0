"""The scores of a large pool between its two passes: two bytes for each row, in a file that is deleted afterwards."""

import hashlib
from pathlib import Path

import numpy as np

from dpal.data.parquet import Block
from dpal.selection.grid import Grid

_CHUNK = 1 << 22
_DTYPE = np.dtype("<u2")


class BlockScores:
    """A scratch file with a place for the score of every row. Only the owner can read it."""

    def __init__(self, path: Path, rows: int) -> None:
        self.path = path
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        self._file = path.open("rb+")
        self._file.truncate(rows * _DTYPE.itemsize)

    def write(self, block: Block, grid: Grid) -> None:
        """Put a block's scores in their place."""
        self._file.seek(block.first * _DTYPE.itemsize)
        self._file.write(grid.astype(_DTYPE).tobytes())

    def read(self, block: Block) -> Grid:
        """The scores of a block."""
        self._file.seek(block.first * _DTYPE.itemsize)
        return np.frombuffer(self._file.read(block.rows * _DTYPE.itemsize), dtype=_DTYPE).astype(np.uint16)

    def fingerprint(self, key: bytes) -> str:
        """A keyed hash of all scores, so that nobody can test guesses about them with it."""
        digest = hashlib.blake2b(digest_size=32, key=key, person=b"dpal scores")
        self._file.flush()
        self._file.seek(0)
        while content := self._file.read(_CHUNK):
            digest.update(content)
        return digest.hexdigest()

    def remove(self) -> None:
        """Delete the file."""
        self._file.close()
        self.path.unlink(missing_ok=True)
