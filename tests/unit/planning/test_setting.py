import pytest

from dpal.errors import InvalidArgument
from dpal.planning.setting import default_delta, equal_queries


def test_default_delta_is_below_one_over_the_pool() -> None:
    for pool, delta in ((1000, 1e-4), (500, 1e-3), (501, 1e-4), (50_000, 1e-5), (10**6, 1e-7)):
        assert default_delta(pool) == pytest.approx(delta)


def test_queries_share_the_labelling_budget() -> None:
    assert equal_queries(25, 10, 4) == (4, 4, 4, 3)
    assert equal_queries(10, 10, 0) == ()
    with pytest.raises(InvalidArgument, match="labelling_budget is 11"):
        equal_queries(11, 10, 4)
