"""Rows of features and their tags: only a row that belongs to its record and its encoder counts."""

import os
from pathlib import Path

import numpy as np
import pytest

from dpal.campaign.feature_files import FeatureFile, stored

KEY = b"k" * 32
PRINTS = tuple(bytes([number]) * 16 for number in range(5))
IDENTITY = "ab" * 32
EVERYTHING = np.arange(5)
ROWS = stored(np.arange(20, dtype=np.float32).reshape(5, 4) + 1)


def opened(folder: Path, **changed: object) -> FeatureFile:
    facts = {"identity": IDENTITY, "width": 4, "fingerprints": PRINTS, "key": KEY} | changed
    return FeatureFile(folder / "features.npy", **facts)  # type: ignore[arg-type]


@pytest.fixture
def full(tmp_path: Path) -> FeatureFile:
    file = opened(tmp_path)
    file.prepare()
    file.write(EVERYTHING, ROWS)
    return file


def test_what_was_written_is_read_again(full: FeatureFile, tmp_path: Path) -> None:
    assert len(opened(tmp_path).missing(EVERYTHING)) == 0
    assert np.array_equal(full.records().read(np.array([3, 1])), ROWS[[3, 1]])
    assert [path.stat().st_mode & 0o077 for path in tmp_path.iterdir()] == [0, 0]


def test_rows_come_in_any_order_and_the_rest_is_missing(tmp_path: Path) -> None:
    file = opened(tmp_path)
    assert file.missing(EVERYTHING).tolist() == [0, 1, 2, 3, 4]
    file.prepare()
    assert file.missing(EVERYTHING).tolist() == [0, 1, 2, 3, 4]
    file.write(np.array([4, 1]), ROWS[[4, 1]])
    # Preparing again removes nothing.
    file.prepare()
    assert opened(tmp_path).missing(EVERYTHING).tolist() == [0, 2, 3]
    assert opened(tmp_path).missing(np.array([1, 2])).tolist() == [2]


def test_a_damaged_row_is_missing_and_no_other(full: FeatureFile, tmp_path: Path) -> None:
    path = tmp_path / "features.npy"
    content = bytearray(path.read_bytes())
    content[-8 * 2 - 3] ^= 1
    path.write_bytes(content)
    assert full.missing(EVERYTHING).tolist() == [2]


@pytest.mark.parametrize(
    "changed",
    [{"identity": "cd" * 32}, {"key": b"l" * 32}, {"fingerprints": tuple(reversed(PRINTS))}],
    ids=["another encoder", "another campaign", "other records"],
)
def test_a_foreign_file_has_no_row(full: FeatureFile, tmp_path: Path, changed: dict[str, object]) -> None:
    # Reversed, only the middle record is in its place.
    expected = [0, 1, 3, 4] if "fingerprints" in changed else [0, 1, 2, 3, 4]
    assert opened(tmp_path, **changed).missing(EVERYTHING).tolist() == expected


@pytest.mark.parametrize("name", ["features.npy", "features.tags"])
@pytest.mark.parametrize("content", [None, b"", b"something else", "short"])
def test_a_file_of_another_form_is_replaced(
    full: FeatureFile, tmp_path: Path, name: str, content: bytes | str | None
) -> None:
    path = tmp_path / name
    if content is None:
        path.unlink()
    elif content == "short":
        os.truncate(path, path.stat().st_size - 1)
    else:
        path.write_bytes(content)  # type: ignore[arg-type]
    assert full.missing(EVERYTHING).tolist() == [0, 1, 2, 3, 4]
    full.prepare()
    full.write(EVERYTHING, ROWS)
    assert len(full.missing(EVERYTHING)) == 0
    assert np.array_equal(full.records().read(EVERYTHING), ROWS)


def test_blank_rows_hold_nothing(full: FeatureFile, tmp_path: Path) -> None:
    assert full.left_over(np.array([1, 2])).tolist() == [1, 2]
    full.blank(np.array([1]))
    assert full.left_over(np.array([1, 2])).tolist() == [2]
    assert not full.records().read(np.array([1])).any()  # type: ignore[union-attr]
    assert ROWS[1].tobytes() not in (tmp_path / "features.npy").read_bytes()


def test_numbers_too_large_for_half_precision_stay_finite() -> None:
    rows = stored(np.array([[1e9, -1e9, 0.1, np.nan]], dtype=np.float32))
    assert rows[0, :3] == pytest.approx([65504, -65504, 0.1], rel=1e-3)
    assert np.isnan(rows[0, 3])
