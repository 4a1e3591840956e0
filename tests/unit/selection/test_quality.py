import numpy as np
import pytest

from dpal.errors import InvalidArgument
from dpal.selection.quality import quality

SCORES = np.array([0.9, 0.1, 0.5, 0.7, 0.3])


def test_by_hand() -> None:
    # The true top three are 0, 3, 2; selected are 0, 2, 4: two of three in common, four in either.
    measured = quality(SCORES, np.array([4, 0, 2]), 3, nothing_is_private=True)
    assert measured.accuracy == pytest.approx(2 / 3)
    assert measured.intersection_over_union == pytest.approx(2 / 4)
    # 0.9, 0.7, 0.5 beside 0.9, 0.5, 0.3.
    assert measured.mean_squared_error == pytest.approx((0.2**2 + 0.2**2) / 3)
    assert measured.mean_score == pytest.approx((0.3 + 0.9 + 0.5) / 3)
    assert measured.pool_mean_score == pytest.approx(0.5)


def test_fewer_than_wanted() -> None:
    measured = quality(SCORES, np.array([0]), 2, nothing_is_private=True)
    assert measured.accuracy == 0.5
    assert measured.intersection_over_union == 0.5
    assert measured.mean_squared_error == pytest.approx(0.2**2 / 2)


def test_a_perfect_selection() -> None:
    measured = quality(SCORES, np.array([0, 3]), 2, nothing_is_private=True)
    assert (measured.accuracy, measured.intersection_over_union, measured.mean_squared_error) == (1, 1, 0)


@pytest.mark.parametrize("promise", [False, None, "yes", 1])
def test_only_in_simulation(promise: object) -> None:
    with pytest.raises(InvalidArgument, match="simulations only"):
        quality(SCORES, np.array([0]), 1, nothing_is_private=promise)


def test_bad_sizes_are_named() -> None:
    with pytest.raises(InvalidArgument, match="query_size is 6"):
        quality(SCORES, np.array([0]), 6, nothing_is_private=True)
    with pytest.raises(InvalidArgument, match="at least 1"):
        quality(SCORES, np.array([], dtype=int), 2, nothing_is_private=True)
