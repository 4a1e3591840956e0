import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpal.privacy.rounding import rounded_up


@given(st.floats(min_value=0, max_value=1e6), st.integers(0, 9))
def test_what_is_shown_is_never_below_and_less_than_one_digit_above(epsilon: float, digits: int) -> None:
    shown = Decimal(f"{rounded_up(epsilon, digits):.{digits}f}")
    assert Decimal(epsilon) <= shown
    assert Decimal(epsilon) > shown - Decimal(1).scaleb(-digits) or shown == 0


@pytest.mark.parametrize(("epsilon", "shown"), [(6.39361, "6.3937"), (6.5, "6.5000"), (0.0, "0.0000"), (8, "8.0000")])
def test_four_digits(epsilon: float, shown: str) -> None:
    assert f"{rounded_up(epsilon, 4):.4f}" == shown


def test_infinity_stays() -> None:
    assert rounded_up(math.inf, 4) == math.inf
