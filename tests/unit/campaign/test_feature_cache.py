"""Features that several campaigns share."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from dpal.campaign.feature_cache import FeatureCache
from dpal.campaign.feature_files import stored
from dpal.errors import BadData

NAMES = [b"a" * 16, b"b" * 16]
ROWS = stored(np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32))


def test_rows_are_found_by_name(tmp_path: Path) -> None:
    cache = FeatureCache(tmp_path / "new" / "cache", width=2)
    assert cache.found(NAMES) == {}
    cache.add(NAMES, ROWS)
    found = FeatureCache(tmp_path / "new" / "cache", width=2).found([NAMES[1], b"c" * 16])
    assert list(found) == [NAMES[1]]
    assert np.array_equal(found[NAMES[1]], ROWS[1])


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    FeatureCache(tmp_path / "cache", width=2).add(NAMES, ROWS)
    assert (tmp_path / "cache").stat().st_mode & 0o077 == 0
    assert (tmp_path / "cache" / "features.db").stat().st_mode & 0o077 == 0


def test_a_damaged_row_is_not_found(tmp_path: Path) -> None:
    cache = FeatureCache(tmp_path, width=2)
    cache.add(NAMES, ROWS)
    with sqlite3.connect(tmp_path / "features.db") as database:
        (content,) = database.execute("SELECT content FROM features WHERE name = ?", (NAMES[0],)).fetchone()
        changed = bytes([content[0] ^ 1]) + content[1:]
        database.execute("UPDATE features SET content = ? WHERE name = ?", (changed, NAMES[0]))
    database.close()
    assert list(cache.found(NAMES)) == [NAMES[1]]
    assert FeatureCache(tmp_path, width=3).found(NAMES) == {}


def test_another_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "features.db").write_bytes(b"not a database, but long enough to look at" * 9)
    with pytest.raises(BadData, match=r"features\.db is damaged\. Remove it"):
        FeatureCache(tmp_path, width=2).found(NAMES)
