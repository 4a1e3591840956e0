"""Few rows of numbers made into many: copies mixed with other rows of their class, so that no two are alike.

Exact copies would all have the same score, so a choice among them would take one record many times.
"""

import numpy as np
from numpy.typing import NDArray

from dpal.data import Pool
from dpal.data.records import Form, PartForm, Positions, Records

# How much of another row a copy has: with cos² + sin² = 1, means and variances of each class stay as they are.
_OWN, _OTHER = np.cos(np.pi / 6), np.sin(np.pi / 6)


class MixedRows(Records):
    """Rows by the places of their two parents. The first copy of a row is the row itself."""

    def __init__(
        self, rows: NDArray[np.generic], centres: NDArray[np.float32], one: Positions, other: Positions
    ) -> None:
        self._rows, self._centres, self._one, self._other = rows, centres, one, other

    @classmethod
    def of(cls, pool: Pool, positions: Positions, rng: np.random.Generator) -> "MixedRows":
        """The pool's rows at these positions, with every repeated one mixed. With several labels, none is."""
        rows = np.asarray(pool.records.read(np.arange(len(pool))))
        other = positions.copy()
        centres = np.zeros((len(pool), rows.shape[1]), dtype=np.float32)
        if not pool.multi_label and pool.labels is not None:
            _, first = np.unique(positions, return_index=True)
            is_copy = np.ones(len(positions), dtype=np.bool_)
            is_copy[first] = False
            for label in np.unique(pool.labels):
                members = np.flatnonzero(pool.labels == label)
                centres[members] = rows[members].astype(np.float32).mean(axis=0)
                copies = np.flatnonzero(is_copy & (pool.labels[positions] == label))
                other[copies] = rng.choice(members, len(copies))
        return cls(rows, centres, positions, other)

    def __len__(self) -> int:
        return len(self._one)

    @property
    def form(self) -> Form:
        return {"": PartForm(dtype=self._rows.dtype, shape=self._rows.shape[1:])}

    def read(self, positions: Positions) -> NDArray[np.generic]:
        one, other = self._one[positions], self._other[positions]
        rows, centre = self._rows[one].astype(np.float32), self._centres[one]
        mixed = centre + _OWN * (rows - centre) + _OTHER * (self._rows[other].astype(np.float32) - centre)
        return np.where((one == other)[:, None], rows, mixed).astype(self._rows.dtype)
