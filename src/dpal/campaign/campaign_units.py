"""What a campaign's selections choose and its training draws: units or, where none are named, single records."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpal.campaign.fingerprints import Contents
from dpal.campaign.state import State
from dpal.data import Pool
from dpal.data.units import EMPTY, mean_by_unit, seated_records, unit_table
from dpal.training.prediction import BATCH_SIZE
from dpal.training.sampling import BLANK


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignUnits:
    """Every unit's name, and the positions of its records in the pool: a row of seats, as many for every unit."""

    names: NDArray[np.str_] = field(repr=False)
    table: NDArray[np.int64] = field(repr=False)
    # False: every record is a unit by itself.
    are_named: bool

    @staticmethod
    def of(pool: Pool, contents: Contents) -> "CampaignUnits":
        """The units of the campaign's pool, which is without withdrawn records; their seats stay empty."""
        if pool.units is None or contents.units is None:
            return CampaignUnits(names=pool.ids, table=np.arange(len(pool))[:, None], are_named=False)
        positions = {record_id: place for place, record_id in enumerate(pool.ids.tolist())}
        names, table = unit_table(contents.units, contents.ids, positions, pool.units.rows)
        return CampaignUnits(names=names, table=table, are_named=True)

    def choosable(self, taken: Iterable[str] = ()) -> NDArray[np.int64]:
        """The places of units that have a record and are not taken."""
        gone = set(taken)
        return np.flatnonzero((self.table != EMPTY).any(axis=1) & [name not in gone for name in self.names.tolist()])

    def records_of(self, names: Iterable[str], pool: Pool) -> tuple[str, ...]:
        """The ids of the records of these units that people label."""
        if not self.are_named:
            return tuple(str(name) for name in names)
        places = {name: place for place, name in enumerate(self.names.tolist())}
        rows = (self.table[places[str(name)]] for name in names)
        return tuple(str(pool.ids[position]) for row in rows for position in row[row != EMPTY])

    def members(self, state: State, group: int, pool: Pool) -> NDArray[np.int64]:
        """The places of a group's units. One without a label keeps its place as a blank: its contents may change only
        its own gradient.
        """
        labelled = self.trained(state, pool)
        places = {name: place for place, name in enumerate(self.names.tolist())}
        asked = np.asarray([places.get(name, BLANK) for name in state.asked[group]], dtype=np.int64)
        teaches = (labelled[asked] != EMPTY).any(axis=1) & (asked != BLANK)
        return np.where(teaches, asked, BLANK)

    def trained(self, state: State, pool: Pool) -> NDArray[np.int64]:
        """The table with the seats of records without a label empty."""
        labelled = [name for group in range(len(state.groups)) for name in state.trainable(group)]
        return seated_records(self.table, pool.positions(labelled).tolist())

    def scoring_order(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The positions to predict for, in batches that are the same whoever has records, and each seat's place there.

        A seat's place in its batch depends on its unit's place alone, and empty seats hold a record of their own unit.
        Batches of empty seats only are left out: that changes how long it takes, and no number. Only dropout, which is
        drawn for every place by itself, then draws other numbers of the same distribution.
        """
        units, seats = self.table.shape
        first = self.table[np.arange(units), (self.table != EMPTY).argmax(axis=1)]
        padded = -(-units // BATCH_SIZE) * BATCH_SIZE
        positions: list[NDArray[np.int64]] = []
        places = np.full((seats, units), EMPTY, dtype=np.int64)
        for seat in range(seats):
            column = np.zeros(padded, dtype=np.int64)
            column[:units] = np.maximum(np.where(self.table[:, seat] == EMPTY, first, self.table[:, seat]), 0)
            for start in range(0, units, BATCH_SIZE):
                stop = min(start + BATCH_SIZE, units)
                if (self.table[start:stop, seat] == EMPTY).all():
                    continue
                places[seat, start:stop] = np.arange(stop - start) + BATCH_SIZE * len(positions)
                positions.append(column[start : start + BATCH_SIZE])
        return np.concatenate(positions) if positions else np.empty(0, dtype=np.int64), places

    def scores(self, by_place: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.float64]:
        """A unit's score: the mean of its own records' scores."""
        by_seat = np.where(places == EMPTY, 0.0, np.append(by_place, 0.0)[places])
        return mean_by_unit(by_seat, self.table)
