"""A pool in Parquet that is never in memory: what it is made of is public, and only records that were asked for are at
hand.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpal.data.class_labels import class_names, class_numbers
from dpal.data.images import ImageRecords
from dpal.data.parquet import ParquetTable, RowColumns
from dpal.data.pool import Pool
from dpal.data.records import ArrayRecords, Records
from dpal.errors import BadData, InvalidArgument


@dataclass(frozen=True, kw_only=True, eq=False)
class LargePool(Pool):
    """The pool of a `ParquetTable`. Its ids, records and labels are those at hand; at first there are none.

    Campaigns keep a copy of the records that they ask for, and read all others block by block.
    """

    table: ParquetTable = field(repr=False)
    # How many Ray workers read and score; 0: this process.
    workers: int = 0

    def __post_init__(self) -> None:
        if len(self.ids):
            super().__post_init__()

    @property
    def unit_count(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride] (a cached property there)
        """The number of rows: public."""
        return len(self.table)

    def with_rows(self, rows: Any) -> "LargePool":
        """The same pool with the rows of an Arrow table at hand."""
        columns = self.table.columns
        ids = self.table.rows_of_ids(rows).names()
        labels = None
        if columns.label is not None:
            labels = class_numbers(rows.column(columns.label).to_pylist(), ids, self.classes)
        return replace(self, ids=ids, records=_records(self.table, rows), labels=labels)


def from_parquet(
    path: str,
    *,
    id_column: str = "id",
    features: str | Sequence[str] | None = None,
    image: str | None = None,
    size: int | None = None,
    channels: int | None = None,
    label: str | None = None,
    classes: int | Sequence[str] | None,
    workers: int = 0,
) -> LargePool:
    """A pool of any size: a Parquet file, a folder of them, or a URI such as s3://bucket/folder.

    Records are numbers (one column of fixed-size lists, or several columns) or encoded images. Reading and scoring take
    as many Ray `workers` as are given (the extra ray); with 0 this process does it. Rows must have an id column: row
    numbers would mean other records once a file is written again.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("workers", workers, "a whole number of Ray workers, or 0 for this process alone")
    names = (features,) if isinstance(features, str) else tuple(features or ())
    columns = RowColumns(id_column=id_column, features=names, image=image, size=size, channels=channels, label=label)
    table = ParquetTable.open(path, columns)
    nobody = np.empty(0, dtype=np.str_)
    known = class_names(classes)
    return LargePool(
        name=path.partition("?")[0].rstrip("/").rpartition("/")[2],
        ids=nobody,
        records=_records(table, None),
        classes=known,
        labels=None if label is None else np.empty(0, dtype=np.int64),
        table=table,
        workers=workers,
    )


def _records(table: ParquetTable, rows: Any) -> Records:
    """Some rows as records: numbers in memory, and images that are decoded when they are read."""
    columns, form = table.columns, table.form[""]
    if columns.image is not None:
        encoded = [] if rows is None else rows.column(columns.image).to_pylist()
        if not all(isinstance(content, bytes) for content in encoded):
            raise BadData(f"The column {columns.image} must hold encoded images as bytes in every row.")
        ids = np.empty(0, dtype=np.str_) if rows is None else table.rows_of_ids(rows).names()
        return ImageRecords(encoded=encoded, ids=ids, channels=form.shape[0], size=form.shape[1])
    if rows is None:
        return ArrayRecords(np.empty((0, *form.shape), dtype=form.dtype))
    return ArrayRecords(np.asarray(table.rows(rows).values))
