"""Several records of one person, held against Gaussian mechanisms, whose exact δ for a group is known."""

import math
from functools import cache
from itertools import product

import mpmath
import pytest

from dpal.errors import InvalidArgument
from dpal.privacy.group_privacy import group_delta, record_delta


@cache
def gaussian_delta(shift: float, epsilon: float) -> mpmath.mpf:
    """The exact δ of N(shift, 1) against N(0, 1), in 40 digits."""
    with mpmath.workdps(40):
        shift, epsilon = mpmath.mpf(shift), mpmath.mpf(epsilon)
        middle, width = epsilon / shift, shift / 2
        return mpmath.ncdf(width - middle) - mpmath.exp(epsilon) * mpmath.ncdf(-width - middle)


def test_the_exact_delta_of_a_gaussian_mechanism_is_an_integral() -> None:
    with mpmath.workdps(30):
        integral = mpmath.quad(
            lambda x: mpmath.npdf(x, 1, 1) - mpmath.exp(3) * mpmath.npdf(x, 0, 1), [3.5, 5, 8, 12, 40]
        )
        assert mpmath.almosteq(integral, gaussian_delta(1.0, 3.0), rel_eps=mpmath.mpf("1e-20"))


def exact_sum(epsilon: float, records: int) -> mpmath.mpf:
    with mpmath.workdps(60):
        return mpmath.fsum(mpmath.exp(i * mpmath.mpf(epsilon)) for i in range(records))


CASES = [
    (shift, epsilon, records)
    for shift, epsilon, records in product((0.1, 0.5, 1.0, 2.0), (0.05, 0.3, 1.0, 3.0, 8.0), (1, 2, 3, 5, 10))
    if gaussian_delta(shift, epsilon) > mpmath.mpf("1e-30")
]


def is_below_the_exact_delta(bound, shift: float, epsilon: float, records: int) -> bool:
    """So many records move a Gaussian mechanism by as many shifts."""
    claimed = bound(epsilon, float(gaussian_delta(shift, epsilon)), records)
    return claimed < gaussian_delta(records * shift, records * epsilon) * (1 - mpmath.mpf("1e-15"))


def test_the_bound_is_never_below_a_gaussian_mechanism() -> None:
    several = [case for case in CASES if case[2] > 1]
    assert sum(group_delta(epsilon, float(gaussian_delta(shift, epsilon)), k) < 1 for shift, epsilon, k in several) > 30
    assert not [case for case in CASES if is_below_the_exact_delta(group_delta, *case)]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda epsilon, delta, records: delta,
        lambda epsilon, delta, records: records * delta,
        lambda epsilon, delta, records: delta * sum(math.exp(-i * epsilon) for i in range(records)),
    ],
    ids=["the same δ", "k times δ", "a falling sum"],
)
def test_a_wrong_bound_is_caught(wrong) -> None:
    assert [case for case in CASES if is_below_the_exact_delta(wrong, *case)]


@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 0.1, 1.0, 8.0, 300.0])
@pytest.mark.parametrize("records", [1, 2, 5, 30])
@pytest.mark.parametrize("delta", [5e-324, 1e-200, 1e-5, 0.3])
def test_the_closed_form_is_the_sum_rounded_up(epsilon: float, records: int, delta: float) -> None:
    exact = min(mpmath.mpf(1), mpmath.mpf(delta) * exact_sum(epsilon, records))
    bound = group_delta(epsilon, delta, records)
    assert bound >= exact * (1 - mpmath.mpf("1e-40"))
    assert bound <= exact * (1 + mpmath.mpf("1e-10")) + mpmath.mpf("1e-323")


@pytest.mark.parametrize(("epsilon", "delta", "records"), [(8.0, 1e-5, 5), (1.0, 1e-6, 2), (4.0, 1e-3, 100)])
def test_what_each_record_needs_is_enough_and_hardly_more(epsilon: float, delta: float, records: int) -> None:
    needed = record_delta(epsilon, delta, records)
    exact = mpmath.mpf(delta) / exact_sum(epsilon / records, records)
    assert exact * (1 - mpmath.mpf("1e-10")) <= needed <= exact
    assert group_delta(epsilon / records, needed, records) == pytest.approx(delta, rel=1e-9)


def test_one_record_has_the_promise_itself() -> None:
    assert group_delta(8.0, 1e-5, 1) == record_delta(8.0, 1e-5, 1) == 1e-5
    assert group_delta(8.0, 0.0, 5) == record_delta(8.0, 0.0, 5) == 0.0


def test_a_delta_of_one_is_where_the_promise_ends() -> None:
    assert group_delta(8.0, 1e-5, 3) == group_delta(1e308, 1e-5, 5) == group_delta(1.0, 1e-5, 10**18) == 1.0
    assert group_delta(8.0, 1e-5, 2) == pytest.approx(1e-5 * (1 + math.exp(8)), rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((8.0, 1e-5, 0), "records is 0, but must be a whole number of at least 1"),
        ((8.0, 1e-5, 1.5), "records is 1.5"),
        ((0.0, 1e-5, 2), "epsilon is 0.0"),
        ((math.nan, 1e-5, 2), "epsilon is nan"),
        ((1.0, 1.5, 2), "delta is 1.5"),
    ],
)
def test_wrong_arguments_are_named(arguments: tuple[float, float, int], message: str) -> None:
    for function in (group_delta, record_delta):
        with pytest.raises(InvalidArgument, match=message):
            function(*arguments)
