"""Pools from CSV, TSV, JSON lines and Parquet."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from dpal.data.columns import Columns, Roles, as_names, pool_from_columns
from dpal.data.pool import Pool
from dpal.errors import BadData, InvalidArgument, MissingData
from dpal.imports import optional

FORMATS = (".csv", ".tsv", ".jsonl", ".parquet")
# A clinic's note may be longer than the standard library's 131,072 characters.
_LONGEST_CELL = 1 << 27
_NO_COLUMN = "\0"


def from_table(
    file: Path | str,
    *,
    text: str | Sequence[str] | None = None,
    image: str | None = None,
    label: str | Sequence[str] | None = None,
    id_column: str | None = None,
    unit_column: str | None = None,
    classes: int | Sequence[str] | None,
    multi_label: bool = False,
    size: int | None = None,
    channels: int | None = None,
    window: Sequence[float] | None = None,
    folder: Path | str | None = None,
    class_counts_are_public: bool = False,
) -> Pool:
    """A pool from a table's columns: texts or images (paths relative to the table's folder, or encoded bytes).

    Images need `size` and `channels` (1 for grey, 3 for colour), and a `window` for more than 8 bits and DICOM.
    Without an id column a record's id is its row number, which is only as stable as the file.
    `unit_column` names the person, or whatever a record belongs to, whom the promise protects.
    """
    path = Path(file)
    if path.suffix.lower() not in FORMATS:
        raise InvalidArgument("file", str(path), f"one of {', '.join(FORMATS)}")
    if not path.is_file():
        raise MissingData(f"There is no file {path}.")
    roles = Roles(text=as_names(text), image=image, label=as_names(label), identity=id_column, unit=unit_column)
    return pool_from_columns(
        read_columns(path, roles.names(), may_be_absent=roles.label),
        roles,
        name=path.name,
        folder=path.parent if folder is None else Path(folder),
        classes=classes,
        multi_label=multi_label,
        size=size,
        channels=channels,
        window=window,
        class_counts_are_public=class_counts_are_public,
    )


def column_names(path: Path) -> list[str]:
    """The names of a table's columns."""
    # A column that no table has: then all names come back.
    return list(read_columns(path, [_NO_COLUMN], may_be_absent=[_NO_COLUMN]))


def read_columns(path: Path, wanted: Sequence[str], *, may_be_absent: Sequence[str] = ()) -> Columns:
    """The wanted columns. If one is missing, all columns of the file, empty.

    A line of JSON may leave out a column that may be absent, such as the label of a record without one.
    """
    match path.suffix.lower():
        case ".parquet":
            return _parquet(path, wanted)
        case ".jsonl":
            return _json_lines(path, wanted, may_be_absent)
        case suffix:
            return _separated(path, wanted, tabs=suffix == ".tsv")


def _separated(path: Path, wanted: Sequence[str], *, tabs: bool) -> Columns:
    csv.field_size_limit(_LONGEST_CELL)
    # Common TSV files (SST-2, GLUE) contain quotation marks that quote nothing.
    options = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if tabs else {"strict": True}
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.reader(lines, **options)  # pyright: ignore[reportArgumentType]
            header = next(reader, [])
            places = [header.index(name) for name in wanted if name in header]
            if len(places) < len(wanted) or len(set(header)) < len(header):
                return _refused_header(path, header)
            columns: dict[str, list[object]] = {name: [] for name in wanted}
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    raise BadData(
                        f"Line {reader.line_num} of {path} has {len(row)} cells, but the header has {len(header)}. "
                        "Nothing was read."
                    )
                for name, place in zip(wanted, places, strict=True):
                    columns[name].append(row[place])
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadData(
            f"{path} cannot be read as {path.suffix[1:].upper()} in UTF-8: {type(error).__name__}."
        ) from error
    return columns


def _refused_header(path: Path, header: list[str]) -> Columns:
    if len(set(header)) < len(header):
        raise BadData(f"{path} has a column twice: {', '.join(header)}.")
    return {name: [] for name in header}


def _json_lines(path: Path, wanted: Sequence[str], may_be_absent: Sequence[str]) -> Columns:
    columns: dict[str, list[object]] = {name: [] for name in wanted}
    seen: set[str] = set()
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            # ValueError: also numbers with thousands of digits. RecursionError: endlessly nested brackets.
            except (ValueError, RecursionError) as error:
                raise BadData(f"Line {number} of {path} is not JSON. Nothing was read.") from error
            if not isinstance(record, dict):
                raise BadData(f"Line {number} of {path} is not an object with named fields.")
            missing = [name for name in wanted if name not in record and name not in may_be_absent]
            if missing:
                raise BadData(f"Line {number} of {path} has no {', '.join(missing)}; it has {', '.join(record)}.")
            seen.update(record)
            for name in wanted:
                columns[name].append(record.get(name))
    # A name that no line has is a typo, not a pool without labels.
    return columns if seen >= set(wanted) else {name: [] for name in sorted(seen)}


def _parquet(path: Path, wanted: Sequence[str]) -> Columns:
    parquet = optional("pyarrow.parquet", extra="data")
    arrow = optional("pyarrow", extra="data")
    try:
        file = parquet.ParquetFile(path)
        names = [str(name) for name in file.schema_arrow.names]
        if not set(wanted) <= set(names) or len(set(names)) < len(names):
            return _refused_header(path, names)
        table = file.read(columns=list(wanted))
        return {name: table.column(name).to_pylist() for name in wanted}
    # UnicodeDecodeError: a text column with bytes that are not UTF-8, which Parquet writers do not check.
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise BadData(f"{path} cannot be read as Parquet ({type(error).__name__}). Is it complete?") from error
