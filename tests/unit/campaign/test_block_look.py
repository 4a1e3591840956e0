from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from large_pools import CLASSES, write_pool

from dpal.campaign.block_look import look_at_blocks
from dpal.data import Pool, from_arrays
from dpal.data.large_pool import LargePool, from_parquet
from dpal.errors import BadData

KEY = bytes(range(32))


def pool(folder: Path) -> LargePool:
    return from_parquet(str(folder), features="features", classes=CLASSES)


def changed(folder: Path, table: pa.Table) -> LargePool:
    folder.mkdir()
    pq.write_table(table, folder / "a.parquet", row_group_size=400)
    return pool(folder)


def held_out(rows: np.ndarray, ids: list[str]) -> Pool:
    return from_arrays(rows, labels=np.zeros(len(rows), dtype=np.int64), ids=ids, classes=CLASSES, name="held out")


def test_every_block_has_a_fingerprint_under_the_key(tmp_path: Path) -> None:
    large = pool(write_pool(tmp_path / "pool", 2000, row_group=300))
    digests, broken = look_at_blocks(large, KEY, held_out=None)
    assert len(digests) == len(large.table.blocks) == len(set(digests)) and broken == 0
    assert look_at_blocks(large, KEY, held_out=None)[0] == digests
    assert not set(look_at_blocks(large, KEY[::-1], held_out=None)[0]) & set(digests)


def test_values_that_are_not_finite_are_counted(tmp_path: Path) -> None:
    values = np.ones((1000, 2), dtype=np.float32)
    values[[3, 999], 1] = np.nan, np.inf
    values[3, 0] = np.inf
    features = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 2)
    table = pa.table({"id": [str(n) for n in range(1000)], "features": features})
    assert look_at_blocks(changed(tmp_path / "pool", table), KEY, held_out=None)[1] == 2


def test_an_id_that_occurs_twice_anywhere_is_refused(tmp_path: Path) -> None:
    table = pq.read_table(write_pool(tmp_path / "pool", 1000))
    again = pa.concat_tables([table, table.slice(5, 2)])
    with pytest.raises(BadData, match=r"2 id\(s\) of the pool twice occur more than once"):
        look_at_blocks(changed(tmp_path / "twice", again), KEY, held_out=None)


def test_a_held_out_set_that_shares_a_record_is_refused(tmp_path: Path) -> None:
    folder = write_pool(tmp_path / "pool", 1000, row_group=300)
    rows = pq.read_table(folder).slice(700, 2)
    values = np.asarray(rows.column("features").to_pylist(), dtype=np.float32)
    ids = rows.column("id").to_pylist()
    other = np.random.default_rng(9).normal(size=values.shape).astype(np.float32)
    look_at_blocks(pool(folder), KEY, held_out=held_out(other, ["new", "newer"]))
    for shared in (held_out(other, ["new", ids[1]]), held_out(np.stack([other[0], values[0]]), ["new", "newer"])):
        with pytest.raises(BadData, match=r"shares 1 record\(s\) with the pool"):
            look_at_blocks(pool(folder), KEY, held_out=shared)


def test_a_label_outside_the_classes_is_refused_before_its_record_can_be_chosen(tmp_path: Path) -> None:
    table = pq.read_table(write_pool(tmp_path / "pool", 1000))
    labels = table.column("label").to_pylist()
    labels[777] = 9
    wrong = table.set_column(table.column_names.index("label"), "label", pa.array(labels))
    (tmp_path / "wrong").mkdir()
    pq.write_table(wrong, tmp_path / "wrong" / "a.parquet")
    for folder, holds in (("pool", True), ("wrong", False)):
        given = from_parquet(str(tmp_path / folder), features="features", label="label", classes=CLASSES)
        with nullcontext() if holds else pytest.raises(BadData, match="outside the classes"):
            look_at_blocks(given, KEY, held_out=None)
