"""Parquet at a path or URI, read row group by row group: however many rows there are, none is listed in memory."""

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from dpal.data.ids import LONGEST_ID
from dpal.data.images import image_records
from dpal.data.records import Form, PartForm, Values
from dpal.errors import BadData, DpalError, InvalidArgument, MissingData
from dpal.imports import optional
from dpal.randomness import IdColumn

# Rows that are decoded at a time. A multiple of the batch that models predict in, so that batches are the same ones.
ROWS_AT_A_TIME = 8192
_ATTEMPTS = 6
_FIRST_PAUSE_SECONDS = 0.2
_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One row group of one file: its number among all, and where it is."""

    number: int
    file: str
    row_group: int
    # The file within the pool: the pool as a whole may move.
    name: str
    # The place of its first row among all rows.
    first: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowColumns:
    """What the columns mean: the id, and numbers (one list column, or several columns) or an encoded image."""

    id_column: str
    features: tuple[str, ...] = ()
    image: str | None = None
    size: int | None = None
    channels: int | None = None
    # Only for simulations, which answer with it.
    label: str | None = None

    def __post_init__(self) -> None:
        if bool(self.features) == (self.image is not None):
            raise DpalError("Name either columns of features or an image column, not both and not neither.")

    def names(self) -> list[str]:
        labels = [] if self.label is None else [self.label]
        return list(dict.fromkeys([self.id_column, *(self.features if self.image is None else [self.image]), *labels]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Some rows that were read: their ids, what the model reads, and the columns as they are in the file."""

    ids: IdColumn
    values: Values = field(repr=False)
    table: Any = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetTable:
    """All row groups under a path or URI. Only their footers are read when it is opened."""

    uri: str
    columns: RowColumns
    blocks: tuple[Block, ...] = field(repr=False)
    form: Form

    @staticmethod
    def open(uri: str, columns: RowColumns) -> "ParquetTable":
        """Find the files (in order of their names) and read their footers."""
        arrow = optional("pyarrow", extra="data")
        system, path = filesystem_of(uri)
        files = again(lambda: _files(system, path, uri))
        blocks: list[Block] = []
        form: Form | None = None
        kinds: list[Any] = []
        first = 0
        for file in files:
            try:
                metadata, schema = again(lambda file=file: _footer(system, file))
            except arrow.ArrowInvalid as error:
                raise BadData(f"{file} cannot be read as Parquet ({type(error).__name__}). Is it complete?") from error
            found = _form(schema, columns, file), [schema.field(name).type for name in columns.names()]
            # As they are in the file: rows of several files become one table once they are chosen.
            if form is not None and found != (form, kinds):
                raise BadData(f"{file} has columns of other types or sizes than the files before it.")
            form, kinds = found
            for group in range(metadata.num_row_groups):
                rows = int(metadata.row_group(group).num_rows)
                if rows:
                    name = file.removeprefix(path).lstrip("/") or file.rpartition("/")[2]
                    blocks.append(
                        Block(number=len(blocks), file=file, name=name, row_group=group, first=first, rows=rows)
                    )
                    first += rows
        if form is None or not blocks:
            raise BadData(f"{uri} is empty: it has no rows.")
        return ParquetTable(uri=uri, columns=columns, blocks=tuple(blocks), form=form)

    def __len__(self) -> int:
        return self.blocks[-1].first + self.blocks[-1].rows

    def read(self, block: Block, *, only_ids: bool = False) -> Iterator[Any]:
        """The columns of a block as Arrow tables of `ROWS_AT_A_TIME` rows; the last one has the rest."""
        parquet, arrow = optional("pyarrow.parquet", extra="data"), optional("pyarrow", extra="data")
        system, _ = filesystem_of(self.uri)
        names = [self.columns.id_column] if only_ids else self.columns.names()
        # Several connections to a store may break between two batches, so a broken read starts the block again.
        with system.open_input_file(block.file) as source, parquet.ParquetFile(source, pre_buffer=True) as file:
            batches = file.iter_batches(ROWS_AT_A_TIME, row_groups=[block.row_group], columns=names)
            left, held = [], 0
            for batch in batches:
                left.append(batch)
                held += batch.num_rows
                while held >= ROWS_AT_A_TIME:
                    table = arrow.Table.from_batches(left)
                    yield table.slice(0, ROWS_AT_A_TIME).combine_chunks()
                    left, held = table.slice(ROWS_AT_A_TIME).to_batches(), held - ROWS_AT_A_TIME
            if held:
                yield arrow.Table.from_batches(left).combine_chunks()

    def rows(self, table: Any) -> Rows:
        """What an Arrow table holds."""
        ids = self.rows_of_ids(table)
        return Rows(ids=ids, values=self._values(table, ids), table=table)

    def rows_of_ids(self, table: Any) -> IdColumn:
        """The ids of an Arrow table."""
        return id_column(table.column(self.columns.id_column), self.columns.id_column)

    def _values(self, table: Any, ids: IdColumn) -> Values:
        columns = self.columns
        if columns.image is not None:
            encoded = table.column(columns.image).to_pylist()
            if not all(isinstance(content, bytes) for content in encoded):
                raise BadData(f"The column {columns.image} must hold encoded images as bytes in every row.")
            images = image_records(encoded, ids.names(), size=columns.size, channels=columns.channels)
            return images.read(np.arange(len(encoded)))
        form = self.form[""]
        parts = [_numbers(table.column(name), name) for name in columns.features]
        joined = parts[0] if len(parts) == 1 else np.column_stack(parts)
        return np.ascontiguousarray(joined.astype(form.dtype, copy=False)).reshape(len(ids), *form.shape)


def filesystem_of(uri: str) -> tuple[Any, str]:
    """The file system of a path or URI, and the path in it: pyarrow's own, and those of fsspec for the rest."""
    fs = optional("pyarrow.fs", extra="data")
    arrow = optional("pyarrow", extra="data")
    scheme = urlsplit(uri).scheme
    if len(scheme) <= 1:
        return fs.LocalFileSystem(), uri
    try:
        return fs.FileSystem.from_uri(uri)
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError) as error:
        fsspec = optional("fsspec", extra="data")
        try:
            system, path = fsspec.core.url_to_fs(uri)
        except (ValueError, ImportError) as cause:
            raise InvalidArgument("path", uri, f"a path, or a URI that pyarrow or fsspec can open ({cause})") from error
        return fs.PyFileSystem(fs.FSSpecHandler(system)), path


def again(read: Any) -> Any:
    """What `read` returns, tried several times: connections break."""
    for attempt in range(_ATTEMPTS):
        try:
            return read()
        except FileNotFoundError:
            raise
        except OSError:
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(_FIRST_PAUSE_SECONDS * 2**attempt)
    raise AssertionError("unreachable")


def joined(tables: Sequence[Any]) -> Any:
    """One table of these, whose columns may differ in whether they could be empty."""
    return optional("pyarrow", extra="data").concat_tables(tables, promote_options="default")


def new_digest(key: bytes) -> "hashlib.blake2b":
    """A keyed fingerprint of a block, to be updated with its tables in order."""
    return hashlib.blake2b(digest_size=_DIGEST_BYTES, key=key, person=b"dpal rows")


def add_to_digest(digest: "hashlib.blake2b", rows: Rows) -> None:
    """Add ids with their lengths, and values with their types: different rows never look equal."""
    _add_bytes(digest, rows.ids)
    values = rows.values if isinstance(rows.values, dict) else {"": rows.values}
    for name, array in sorted(values.items()):
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _add_bytes(digest: "hashlib.blake2b", ids: IdColumn) -> None:
    digest.update(ids.lengths.astype("<i8").data)
    if len(ids):
        start, end = int(ids.starts[0]), int(ids.starts[-1] + ids.lengths[-1])
        digest.update(ids.data[start:end].data)


def id_column(column: Any, name: str) -> IdColumn:
    """The ids of a text or whole-number column, without a Python object for each."""
    arrow = optional("pyarrow", extra="data")
    compute = optional("pyarrow.compute", extra="data")
    types = arrow.types
    array = column.combine_chunks() if isinstance(column, arrow.ChunkedArray) else column
    if isinstance(array, arrow.ChunkedArray):
        array = array.chunk(0)
    if array.null_count:
        raise BadData(f"{array.null_count:,} row(s) have no id in the column {name}.")
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not (types.is_integer(array.type) or types.is_string(array.type) or types.is_large_string(array.type)):
        raise BadData(f"The column {name} holds {array.type}. Ids are texts or whole numbers.")
    array = compute.cast(array, arrow.large_string())
    try:
        # Parquet does not. A text that is refused only when its record is chosen would tell that it is.
        array.validate(full=True)
    except arrow.ArrowInvalid as error:
        raise BadData(f"An id in the column {name} is not text in UTF-8.") from error
    if len(array) and compute.max(compute.utf8_length(array)).as_py() > LONGEST_ID:
        raise BadData(f"An id in the column {name} has more than {LONGEST_ID:,} characters.")
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    content = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, dtype=np.uint8)
    column_of_ids = IdColumn(data=content, starts=ends[:-1], lengths=np.diff(ends))
    if len(array) and int(column_of_ids.lengths.min()) == 0:
        raise BadData(f"A row has an empty id in the column {name}.")
    if b"\0" in content[int(ends[0]) : int(ends[-1])].tobytes():
        raise BadData(f"An id in the column {name} has a NUL in it.")
    return column_of_ids


def _files(system: Any, path: str, uri: str) -> list[str]:
    fs = optional("pyarrow.fs", extra="data")
    info = system.get_file_info(path)
    if info.type == fs.FileType.File:
        return [path]
    if info.type == fs.FileType.Directory:
        inside = system.get_file_info(fs.FileSelector(path, recursive=True))
        files = sorted(file.path for file in inside if file.type == fs.FileType.File and _is_data(file.path))
        if files:
            return files
        raise MissingData(f"{uri} has no files that end in .parquet.")
    raise MissingData(f"There is no file or folder {uri}.")


def _is_data(path: str) -> bool:
    return path.endswith(".parquet") and not path.rsplit("/", 1)[-1].startswith((".", "_"))


def _footer(system: Any, file: str) -> tuple[Any, Any]:
    parquet = optional("pyarrow.parquet", extra="data")
    with system.open_input_file(file) as source, parquet.ParquetFile(source) as opened:
        return opened.metadata, opened.schema_arrow


def _form(schema: Any, columns: RowColumns, file: str) -> Form:
    """What one record looks like, from the schema alone."""
    missing = [name for name in columns.names() if name not in schema.names]
    if missing:
        raise BadData(f"{file} has no column {', '.join(missing)}. Its columns are {', '.join(schema.names)}.")
    if columns.image is not None:
        if columns.size is None or columns.channels is None:
            # Says why both must be stated.
            image_records([b""], np.asarray(["x"]), size=columns.size, channels=columns.channels)
            raise AssertionError("unreachable")
        side = columns.size
        return {"": PartForm(dtype=np.dtype(np.uint8), shape=(columns.channels, side, side))}
    return {"": _form_of_numbers([schema.field(name).type for name in columns.features], columns.features)}


def _form_of_numbers(kinds: Sequence[Any], names: Sequence[str]) -> PartForm:
    types = optional("pyarrow", extra="data").types
    for kind, name in zip(kinds, names, strict=True):
        inner = kind.value_type if types.is_fixed_size_list(kind) else kind
        if (types.is_fixed_size_list(kind) and len(names) > 1) or not (
            types.is_floating(inner) or types.is_integer(inner)
        ):
            raise BadData(
                f"The column {name} holds {kind}. Features are either one column of fixed-size lists of numbers, or "
                "columns of single numbers."
            )
    only = kinds[0]
    if types.is_fixed_size_list(only):
        dtype = np.dtype(only.value_type.to_pandas_dtype())
        return PartForm(dtype=_read_as(dtype), shape=(only.list_size,))
    dtype = np.result_type(*(np.dtype(kind.to_pandas_dtype()) for kind in kinds))
    return PartForm(dtype=_read_as(dtype), shape=(len(kinds),))


def _read_as(dtype: np.dtype[Any]) -> np.dtype[Any]:
    # Models compute in 32 bits. Half precision stays: it is read as it is stored.
    return dtype if dtype in (np.dtype(np.float16), np.dtype(np.uint8)) else np.dtype(np.float32)


def _numbers(column: Any, name: str) -> NDArray[Any]:
    arrow = optional("pyarrow", extra="data")
    array = column.combine_chunks() if isinstance(column, arrow.ChunkedArray) else column
    if isinstance(array, arrow.ChunkedArray):
        array = array.chunk(0)
    inner = array.flatten() if arrow.types.is_fixed_size_list(array.type) else array
    if array.null_count or inner.null_count:
        raise BadData(f"Rows of the column {name} have no value. Every record needs all of its numbers.")
    numbers = inner.to_numpy(zero_copy_only=False)
    return numbers if inner is array else numbers.reshape(len(array), -1)
