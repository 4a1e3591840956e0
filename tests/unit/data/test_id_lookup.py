from pathlib import Path

import numpy as np
from large_pools import COLUMNS, write_pool

from dpal.data.id_lookup import is_excluded, lookup_of, unknown_in
from dpal.data.parquet import ParquetTable
from dpal.randomness import IdColumn

NAMES = np.asarray([f"id {number}" for number in range(1000)])


def test_ids_are_found_and_others_are_not() -> None:
    column = IdColumn.of(NAMES)
    wanted = lookup_of(IdColumn.of(NAMES[[3, 500, 999]]))
    assert np.flatnonzero(is_excluded(column, wanted)).tolist() == [3, 500, 999]
    assert not is_excluded(column, lookup_of(IdColumn.of(NAMES[:0]))).any()
    assert not is_excluded(column, lookup_of(IdColumn.of(np.asarray(["id", "id 10000"])))).any()
    # Both numbers must agree: the second of a neighbour is not enough.
    planted = lookup_of(column[:1]).copy()
    planted[0, 1] += 1
    assert not is_excluded(column, planted).any()


def test_ids_that_no_row_has_are_named(tmp_path: Path) -> None:
    table = ParquetTable.open(str(write_pool(tmp_path / "pool", 3000, row_group=700)), COLUMNS)
    known = [name for chunk in table.read(table.blocks[-1]) for name in table.rows_of_ids(chunk).names().tolist()]
    assert unknown_in(table, known[-2:]) == []
    assert unknown_in(table, ["nobody", known[0], "0x"]) == ["nobody", "0x"]
