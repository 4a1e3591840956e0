"""Which records each unit of privacy trains on. A unit, such as a patient, is drawn, averaged and clipped as one."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpal.errors import DpalError, InvalidArgument
from dpal.training.sampling import BLANK, Positions


def checked_units(units: NDArray[np.integer], records: int) -> Positions:
    """The table (units, rows) of positions. A record in two seats would move the weights twice."""
    table = np.asarray(units)
    if table.ndim != 2 or table.shape[1] == 0 or table.dtype.kind not in "iu":
        raise InvalidArgument(
            "units", f"an array of shape {table.shape} and dtype {table.dtype}", "a table (units, rows) of positions"
        )
    table = table.astype(np.int64)
    filled = table[table != BLANK]
    if len(filled) and not 0 <= filled.min() <= filled.max() < records:
        raise InvalidArgument("a position in units", "out of range", f"at least 0 and below {records:,}, or BLANK")
    if len(np.unique(filled)) < len(filled):
        raise DpalError("A record occurs twice in the units. Each record may be in one unit only, once.")
    return table


def padded(table: Positions) -> Positions:
    """The table with each unit's own first record in its empty seats; a unit without records stays `BLANK`.

    So whatever is read and computed has a public shape, and a record that breaks something breaks its own unit alone.
    """
    first = table[np.arange(len(table)), (table != BLANK).argmax(axis=1)]
    return np.where(table != BLANK, table, first[:, None])


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """The rows that each unit has in a batch, and their weights in the mean of its gradients.

    How many records a unit has is private, so neither is shown.
    """

    records: Positions = field(repr=False)
    # None: a unit has one row, and there is nothing to average.
    weights: NDArray[np.float64] | None = field(repr=False)

    @classmethod
    def of_table(cls, units: NDArray[np.integer], records: int) -> "Units":
        """Units of the records in each row of a table. One column is the same as training on records."""
        table = checked_units(units, records)
        if table.shape[1] == 1:
            return cls(records=table, weights=None)
        taken = table != BLANK
        return cls(records=padded(table), weights=taken / np.maximum(1, taken.sum(axis=1, keepdims=True)))

    @classmethod
    def of_single_records(cls, count: int) -> "Units":
        """Every record is a unit of its own."""
        return cls(records=np.arange(count)[:, None], weights=None)

    def __len__(self) -> int:
        return len(self.records)

    @property
    def rows(self) -> int:
        """The public number of rows of a unit."""
        return self.records.shape[1]

    def that_teach(self, group: Positions) -> Positions:
        """The group with `BLANK` in place of units without a record to train on."""
        return np.where((group != BLANK) & (self.records[group, 0] != BLANK), group, BLANK)

    def positions(self, units: Positions) -> Positions:
        """The records of these units, one unit after the other."""
        return self.records[units].reshape(-1)

    def row_weights(self, units: Positions, copies: int) -> NDArray[np.float32] | None:
        """One weight for every row of these units, each record with so many copies."""
        if self.weights is None:
            return None
        return (self.weights[units].reshape(-1) / copies).repeat(copies).astype(np.float32)
