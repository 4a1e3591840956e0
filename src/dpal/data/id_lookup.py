"""Ids as pairs of numbers: some of them are found among millions without a Python object for each."""

import numpy as np
from numpy.typing import NDArray

from dpal.data.parquet import ParquetTable
from dpal.randomness import IdColumn, RecordCoins

# Equal ids give equal numbers, and others differ. Nothing depends on this key being secret.
_LOOKUP = RecordCoins(b"dpal: ids as pairs of numbers".ljust(32, b"."))


def lookup_of(ids: IdColumn) -> NDArray[np.uint64]:
    """Ids as sorted numbers, by which they are found."""
    order = _LOOKUP.order(ids)
    return order[np.lexsort((order[:, 1], order[:, 0]))]


def is_excluded(ids: IdColumn, excluded: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which ids are among these."""
    if not len(excluded):
        return np.zeros(len(ids), dtype=np.bool_)
    order = _LOOKUP.order(ids)
    places = np.minimum(np.searchsorted(excluded[:, 0], order[:, 0]), len(excluded) - 1)
    return np.asarray((excluded[places] == order).all(axis=1))


def unknown_in(table: ParquetTable, ids: list[str]) -> list[str]:
    """Those of the ids that no row has. Only the id column is read."""
    missing = dict.fromkeys(ids)
    for block in table.blocks:
        for rows in table.read(block, only_ids=True):
            wanted = lookup_of(IdColumn.of(np.asarray(list(missing), dtype=np.str_)))
            column = table.rows_of_ids(rows)
            for name in column[is_excluded(column, wanted)].names().tolist():
                missing.pop(name, None)
            if not missing:
                return []
    return list(missing)
