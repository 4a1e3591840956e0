"""Pools from numpy arrays and .npy files."""

from pathlib import Path

import numpy as np
import pytest
from small_pools import IDS, VALUES

from dpal.data import from_arrays, from_numpy_file
from dpal.errors import BadData, InvalidArgument, MissingData


def test_memory_maps_stay_on_disk(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    np.save(tmp_path / "y.npy", np.array([0, 1, 1, 0, 1, 0]))
    np.save(tmp_path / "ids.npy", np.array(IDS))
    pool = from_numpy_file(tmp_path / "x.npy", labels=tmp_path / "y.npy", ids=tmp_path / "ids.npy", classes=2)
    assert isinstance(pool.records.arrays, np.memmap)  # type: ignore[attr-defined]
    assert np.array_equal(pool.records.read(pool.positions(["a"])), VALUES[[3]])


def test_files_that_are_no_arrays_are_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY but not really")
    np.save(tmp_path / "objects.npy", np.array([{"run": "me"}], dtype=object), allow_pickle=True)
    for name in ("broken.npy", "objects.npy"):
        with pytest.raises(BadData, match=name):
            from_numpy_file(tmp_path / name, classes=2)
    with pytest.raises(MissingData, match=r"none\.npy"):
        from_numpy_file(tmp_path / "none.npy", classes=2)


@pytest.mark.parametrize("values", [VALUES.tolist(), np.array(3.0)])
def test_what_is_no_array_of_rows_is_refused(values: object) -> None:
    with pytest.raises(InvalidArgument, match="numpy array with one row per record"):
        from_arrays(values, classes=2)  # type: ignore[arg-type]


def test_a_file_with_a_single_number_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    np.save(tmp_path / "y.npy", np.array(1))
    with pytest.raises(BadData, match=r"y\.npy holds one number"):
        from_numpy_file(tmp_path / "x.npy", labels=tmp_path / "y.npy", classes=2)
