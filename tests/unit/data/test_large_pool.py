import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from large_pools import WIDTH, write_pool
from PIL import Image

from dpal.data.large_pool import LargePool, from_parquet
from dpal.data.sources import open_pool, with_absolute_paths
from dpal.data.unit_rule import UnitRule
from dpal.errors import BadData, InvalidArgument


def test_nobody_is_at_hand_at_first_and_then_whoever_was_asked_for(tmp_path: Path) -> None:
    folder = write_pool(tmp_path / "pool", 500)
    pool = open_pool("parquet", {"path": str(folder), "features": "features", "label": "label", "classes": 4})
    assert isinstance(pool, LargePool) and pool.name == "pool"
    assert (len(pool), pool.unit_count, pool.unit, pool.rows_per_unit) == (0, 500, "record", 1)
    assert pool.records.form[""].shape == (WIDTH,) and len(pool.records) == 0
    assert not pool.labelled().any()
    rows = pq.read_table(folder).take(pa.array([7, 3]))
    asked = pool.with_rows(rows)
    assert asked.ids.tolist() == rows.column("id").to_pylist() and asked.unit_count == 500
    assert asked.labels.tolist() == rows.column("label").to_pylist()
    expected = np.asarray(rows.column("features").to_pylist(), dtype=np.float32)
    assert np.array_equal(asked.records.read(np.arange(2)), expected)
    one = asked.take([asked.ids[1]])
    assert one.ids.tolist() == [asked.ids[1]] and one.unit_count == 500
    with pytest.raises(BadData, match="more than once"):
        pool.with_rows(pa.concat_tables([rows, rows]))


def test_images_at_hand_are_images(tmp_path: Path) -> None:
    content = io.BytesIO()
    Image.new("RGB", (8, 8), (10, 20, 30)).save(content, "PNG")
    rows = pa.table({"key": ["a"], "scan": [content.getvalue()]})
    pq.write_table(rows, tmp_path / "one.parquet")
    options = {"id_column": "key", "image": "scan", "size": 8, "channels": 3, "classes": ["ill", "well"]}
    pool = from_parquet(str(tmp_path / "one.parquet"), **options)
    assert pool.labels is None and len(pool.records) == 0
    assert pool.with_rows(rows).records.read(np.asarray([0]))[0, :, 0, 0].tolist() == [10, 20, 30]
    with pytest.raises(BadData, match="encoded images"):
        pool.with_rows(pa.table({"key": ["a"], "scan": ["a path"]}))


def test_paths_become_absolute_and_uris_stay(tmp_path: Path) -> None:
    assert with_absolute_paths({"path": "pool"}, tmp_path) == {"path": str(tmp_path / "pool")}
    assert with_absolute_paths({"path": "s3://bucket/pool"}, tmp_path) == {"path": "s3://bucket/pool"}


def test_what_a_large_pool_cannot_do_is_said(tmp_path: Path) -> None:
    options = {"path": str(write_pool(tmp_path / "pool", 20)), "features": "features", "classes": 4}
    with pytest.raises(InvalidArgument, match="a large pool protects each record by itself"):
        open_pool("parquet", options, UnitRule(pattern="(.)"))
    for workers in (-1, 1.5, True):
        with pytest.raises(InvalidArgument, match="workers"):
            from_parquet(**options, workers=workers)
