import math

import pytest

from dpal.privacy.search import bracket, most_that_fits, safe_crossing


@pytest.mark.parametrize("root", [1e-6, 0.3, 1.0, 17.0, 999.0])
def test_the_answer_is_safe_and_close(root: float) -> None:
    def gap(x: float) -> float:
        return root - x

    safe, unsafe = bracket(gap, start=1.0, stride=1.0, safest=1e4, boldest=0.0) or (math.nan, math.nan)
    answer = safe_crossing(gap, safe=safe, unsafe=unsafe, gap_tolerance=1e-9)
    assert gap(answer) <= 0
    assert answer - root <= 1e-9


def test_a_jump_ends_at_its_safe_side() -> None:
    answer = safe_crossing(lambda x: 1.0 if x < 0.7 else -1.0, safe=2.0, unsafe=0.0, gap_tolerance=0.0)
    assert 0.7 <= answer < 0.7 + 1e-9


def test_infinite_and_nan_gaps_are_unsafe() -> None:
    answer = safe_crossing(lambda x: math.inf if x < 0.5 else 0.6 - x, safe=2.0, unsafe=0.0, gap_tolerance=1e-9)
    assert 0.6 <= answer < 0.6 + 1e-8
    answer = safe_crossing(lambda x: math.nan if x < 0.5 else -1.0, safe=2.0, unsafe=0.0, gap_tolerance=0.0)
    assert 0.5 <= answer < 0.5 + 1e-9


def test_an_unsafe_start_is_refused() -> None:
    with pytest.raises(ValueError, match="not safe"):
        safe_crossing(lambda x: 1.0, safe=1.0, unsafe=0.0, gap_tolerance=1e-9)


def test_the_ends_of_the_world() -> None:
    assert bracket(lambda x: 1.0, start=0.0, stride=1.0, safest=50.0, boldest=-50.0) is None
    assert bracket(lambda x: -1.0, start=0.0, stride=1.0, safest=50.0, boldest=-50.0) == (-50.0, -50.0)
    assert bracket(lambda x: math.nan, start=0.0, stride=1.0, safest=50.0, boldest=-50.0) is None


@pytest.mark.parametrize("largest", [0, 1, 2, 3, 100, 1023, 1024, 5000])
def test_the_most_that_fits(largest: int) -> None:
    assert most_that_fits(lambda n: n <= largest, limit=5000) == largest
