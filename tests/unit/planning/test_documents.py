import pytest
from settings import SMALL

import dpal
from dpal.errors import InvalidArgument


@pytest.fixture(scope="module")
def small() -> dpal.Plan:
    return dpal.plan(**SMALL)


def test_a_key_that_stands_twice_is_refused(small: dpal.Plan) -> None:
    with pytest.raises(InvalidArgument, match="appears twice"):
        dpal.read_plan(small.to_text().replace("{", '{"epsilon": 0.001, ', 1))
