import numpy as np
import pytest

from dpal.errors import InvalidArgument
from dpal.selection.grid import on_grid


def test_on_grid_rounds_down() -> None:
    grid = on_grid(np.array([0.0, 0.19, 0.2, 0.5, 0.8, 2.0, -1.0]), highest=0.8, steps=4)
    assert grid.tolist() == [0, 0, 1, 2, 4, 4, 0]
    assert on_grid(np.array([0, 1, 2]), highest=2.0, steps=4).tolist() == [0, 2, 4]
    assert on_grid(np.array([0.5], dtype=np.float32), highest=1.0, steps=4).tolist() == [2]
    with pytest.raises(InvalidArgument, match="highest score"):
        on_grid(np.zeros(3), highest=0.0, steps=4)
