"""Rows of Parquet come back as they were written, in chunks of one size, and a change of any bit is seen."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from large_pools import COLUMNS, WIDTH, write_pool
from PIL import Image

from dpal.data import parquet
from dpal.data.parquet import ParquetTable, RowColumns, add_to_digest, again, joined, new_digest
from dpal.errors import BadData, DpalError, InvalidArgument, MissingData

KEY = bytes(range(32))


def digests(table: ParquetTable) -> list[bytes]:
    found = []
    for block in table.blocks:
        digest = new_digest(KEY)
        for chunk in table.read(block):
            add_to_digest(digest, table.rows(chunk))
        found.append(digest.digest())
    return found


def written(folder: Path, columns: dict, name: str = "a.parquet", **options) -> str:
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), folder / name, **options)
    return str(folder)


def test_rows_come_back_in_order_and_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_pool(tmp_path / "pool", 5000, files=3, row_group=900)
    whole = pq.read_table(folder)
    (folder / "_SUCCESS").touch()
    (folder / "_metadata.parquet").touch()
    for size in (256, 1 << 13):
        monkeypatch.setattr(parquet, "ROWS_AT_A_TIME", size)
        table = ParquetTable.open(str(folder), COLUMNS)
        assert len(table) == 5000 and len(table.blocks) == 6
        assert [block.first for block in table.blocks] == np.cumsum([0, *(b.rows for b in table.blocks[:-1])]).tolist()
        ids, values = [], []
        for block in table.blocks:
            chunks = [table.rows(chunk) for chunk in table.read(block)]
            assert all(len(rows.ids) == size for rows in chunks[:-1])
            ids += [name for rows in chunks for name in rows.ids.names().tolist()]
            values += [rows.values for rows in chunks]
            only = [name for chunk in table.read(block, only_ids=True) for name in table.rows_of_ids(chunk).names()]
            assert only == ids[-block.rows :]
        assert ids == whole.column("id").to_pylist()
        expected = np.asarray(whole.column("features").to_pylist(), dtype=np.float32)
        assert np.array_equal(np.concatenate(values), expected)
    assert table.form[""].shape == (WIDTH,) and table.form[""].dtype == np.float32


def test_every_change_changes_the_fingerprint_of_its_block(tmp_path: Path) -> None:
    ids, values = ["a", "bc", "d", "e"], np.arange(8, dtype=np.float32)

    def pool(name: str, ids: list[str], values: np.ndarray, groups: int = 2) -> list[bytes]:
        features = pa.FixedSizeListArray.from_arrays(pa.array(values), 2)
        place = written(tmp_path / name, {"id": ids, "features": features}, row_group_size=groups)
        return digests(ParquetTable.open(place, COLUMNS))

    first = pool("first", ids, values)
    assert pool("again", ids, values) == first
    moved = values.copy()
    moved[7] = np.nextafter(moved[7], 9)
    assert [a == b for a, b in zip(pool("moved", ids, moved), first, strict=True)] == [True, False]
    # The letters are the same ones, and belong to other ids.
    assert pool("shifted", ["ab", "c", "d", "e"], values)[0] != first[0]
    swapped = values.reshape(4, 2)[[1, 0, 2, 3]].ravel()
    assert pool("swapped", ids, swapped)[0] != first[0]
    other = new_digest(KEY[::-1])
    assert other.digest() != new_digest(KEY).digest()


def test_columns_of_single_numbers_and_of_halves(tmp_path: Path) -> None:
    single = written(tmp_path / "single", {"id": [7, 8, 9], "x": [1, 2, 3], "y": [0.5, 1.5, 2.5]})
    table = ParquetTable.open(single, RowColumns(id_column="id", features=("y", "x")))
    (chunk,) = table.read(table.blocks[0])
    rows = table.rows(chunk)
    assert rows.ids.names().tolist() == ["7", "8", "9"]
    assert rows.values.tolist() == [[0.5, 1], [1.5, 2], [2.5, 3]] and rows.values.dtype == np.float32
    halves = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6, dtype=np.float16)), 3)
    place = written(tmp_path / "halves", {"id": pa.array(["a", "b"]).dictionary_encode(), "features": halves})
    table = ParquetTable.open(place + "/a.parquet", COLUMNS)
    (chunk,) = table.read(table.blocks[0])
    assert table.rows(chunk).values.dtype == np.float16 and table.rows(chunk).ids.names().tolist() == ["a", "b"]


def test_images_are_decoded(tmp_path: Path) -> None:
    content = io.BytesIO()
    Image.new("L", (8, 8), 77).save(content, "PNG")
    place = written(tmp_path / "images", {"id": ["a", "b"], "scan": [content.getvalue()] * 2})
    table = ParquetTable.open(place, RowColumns(id_column="id", image="scan", size=8, channels=1))
    (chunk,) = table.read(table.blocks[0])
    values = table.rows(chunk).values
    assert values.shape == (2, 1, 8, 8) and (values == 77).all() and table.form[""].shape == (1, 8, 8)
    with pytest.raises(InvalidArgument, match="the form of the images"):
        ParquetTable.open(place, RowColumns(id_column="id", image="scan"))


LISTS = pa.array([[1.0], [2.0, 3.0]])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": ["a", None], "features": [1.0, 2.0]}, "no id"),
        ({"id": ["a", ""], "features": [1.0, 2.0]}, "empty id"),
        ({"id": ["a", "b\0"], "features": [1.0, 2.0]}, "NUL"),
        ({"id": ["a", "ä" * 1025], "features": [1.0, 2.0]}, "more than 1,024 characters"),
        ({"id": pa.array([b"a", b"\xff"]).view(pa.string()), "features": [1.0, 2.0]}, "not text in UTF-8"),
        ({"id": [0.5, 1.5], "features": [1.0, 2.0]}, "Ids are texts or whole numbers"),
        ({"id": ["a", "b"], "features": [1.0, None]}, "no value"),
        ({"id": ["a", "b"], "features": ["x", "y"]}, "fixed-size lists"),
        ({"id": ["a", "b"], "features": LISTS}, "fixed-size lists"),
        ({"name": ["a", "b"], "features": [1.0, 2.0]}, "has no column id. Its columns are name, features"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, columns: dict, message: str) -> None:
    with pytest.raises(BadData, match=message):
        table = ParquetTable.open(written(tmp_path / "pool", columns), COLUMNS)
        for chunk in table.read(table.blocks[0]):
            table.rows(chunk)


@pytest.mark.parametrize("kinds", [(pa.large_string(), pa.float32()), (pa.string(), pa.float64())])
def test_files_of_other_types_are_refused_when_they_are_opened(tmp_path: Path, kinds: tuple) -> None:
    """And not when records of both are chosen: which ones are, is private."""
    columns = {"id": ["a", "b"], "features": pa.array([1.0, 2.0], pa.float32())}
    place = written(tmp_path / "pool", columns)
    other = {"id": pa.array(["c", "d"], kinds[0]), "features": pa.array([1.0, 2.0], kinds[1])}
    pq.write_table(pa.table(other), tmp_path / "pool" / "z.parquet")
    with pytest.raises(BadData, match="other types"):
        ParquetTable.open(place, COLUMNS)


def test_files_that_differ_in_what_may_be_empty_are_one_pool(tmp_path: Path) -> None:
    place = written(tmp_path / "pool", {"id": ["a", "b"], "features": pa.array([1.0, 2.0], pa.float32())})
    strict = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("features", pa.float32())])
    rows = pa.table({"id": ["c", "d"], "features": pa.array([1.0, 2.0], pa.float32())}).cast(strict)
    pq.write_table(rows, tmp_path / "pool" / "z.parquet")
    table = ParquetTable.open(place, COLUMNS)
    parts = [part for block in table.blocks for part in table.read(block)]
    assert table.rows_of_ids(joined(parts)).names().tolist() == ["a", "b", "c", "d"]


def test_places_without_a_pool_are_refused(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "none").mkdir()
    for place, error in (("gone", MissingData), ("none", MissingData), ("broken", BadData)):
        with pytest.raises(error):
            ParquetTable.open(str(tmp_path / place), COLUMNS)
    with pytest.raises(InvalidArgument, match="pyarrow or fsspec"):
        ParquetTable.open("nonsense://bucket/pool", COLUMNS)
    empty = written(tmp_path / "empty", {"id": pa.array([], pa.string()), "features": pa.array([], pa.float32())})
    with pytest.raises(BadData, match="no rows"):
        ParquetTable.open(empty, COLUMNS)
    other = written(tmp_path / "other", {"id": ["a"], "features": [1.0]})
    written(tmp_path / "other", {"id": ["b"], "features": [np.float16(1.0)]}, name="b.parquet")
    with pytest.raises(BadData, match="other types or sizes"):
        ParquetTable.open(other, COLUMNS)
    for columns in ({"features": ("a",), "image": "b"}, {}):
        with pytest.raises(DpalError, match="either columns of features or an image column"):
            RowColumns(id_column="id", **columns)


def test_a_uri_of_fsspec_and_of_pyarrow_is_opened(tmp_path: Path) -> None:
    import fsspec

    folder = write_pool(tmp_path / "pool", 300, files=2)
    assert len(ParquetTable.open(f"file://{folder}", COLUMNS)) == 300
    memory = fsspec.filesystem("memory")
    for file in folder.iterdir():
        memory.pipe_file(f"/pool/{file.name}", file.read_bytes())
    table = ParquetTable.open("memory://pool", COLUMNS)
    assert digests(table) == digests(ParquetTable.open(str(folder), COLUMNS))


def test_broken_connections_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_FIRST_PAUSE_SECONDS", 0.0)
    left = [OSError("lost"), ConnectionResetError("lost"), None]

    def read() -> str:
        if (error := left.pop(0)) is not None:
            raise error
        return "here"

    assert again(read) == "here"
    left[:] = [OSError("lost")] * 9
    with pytest.raises(OSError, match="lost"):
        again(read)
    assert len(left) == 9 - parquet._ATTEMPTS
    # What is not there does not come by waiting.
    left[:] = [FileNotFoundError("gone"), None]
    with pytest.raises(FileNotFoundError):
        again(read)
    assert left == [None]
