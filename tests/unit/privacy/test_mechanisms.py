import json
import math

import pytest
from histories import step

from dpal.errors import InvalidArgument
from dpal.privacy.accountants import ACCOUNTANTS
from dpal.privacy.history import canonical
from dpal.privacy.mechanisms import (
    BernoulliSelection,
    Gaussian,
    Laplace,
    PoissonSampledGaussian,
    mechanism_from_json,
)
from dpal.privacy.renyi import checked_orders

NAN = float("nan")


@pytest.mark.parametrize("value", [-0.1, 1.1, NAN, math.inf, "0.5", None, True])
def test_a_bad_sampling_probability_is_named(value: object) -> None:
    with pytest.raises(InvalidArgument, match=r"sampling_probability is .* must be a number from 0 to 1") as caught:
        PoissonSampledGaussian(sampling_probability=value, noise_multiplier=1)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("value", [0, -1, NAN, math.inf, "1"])
def test_a_bad_noise_multiplier_is_named(value: object) -> None:
    for make in (lambda: Gaussian(noise_multiplier=value), lambda: step(0.5, value)):
        with pytest.raises(InvalidArgument, match=r"noise_multiplier is .* must be a finite number above 0"):
            make()


@pytest.mark.parametrize("value", [0, 1, -0.5, NAN])
def test_a_selection_probability_of_zero_or_one_is_refused(value: float) -> None:
    with pytest.raises(InvalidArgument, match="probability_low"):
        BernoulliSelection(probability_high=0.5, probability_low=value)


@pytest.mark.parametrize("delta", [0, 1, -1e-5, 2, NAN])
@pytest.mark.parametrize("name", sorted(ACCOUNTANTS))
def test_a_bad_delta_is_named(name: str, delta: float) -> None:
    with pytest.raises(InvalidArgument, match="delta is"):
        ACCOUNTANTS[name].epsilon([(step(0.1, 1), 1)], delta)


@pytest.mark.parametrize("epsilon", [-1, NAN, math.inf])
@pytest.mark.parametrize("name", sorted(ACCOUNTANTS))
def test_a_bad_epsilon_is_named(name: str, epsilon: float) -> None:
    with pytest.raises(InvalidArgument, match="epsilon is"):
        ACCOUNTANTS[name].delta([(step(0.1, 1), 1)], epsilon)


@pytest.mark.parametrize("count", [-1, 1.5, NAN, "3", None])
@pytest.mark.parametrize("name", sorted(ACCOUNTANTS))
def test_a_bad_count_is_named(name: str, count: object) -> None:
    with pytest.raises(InvalidArgument, match=r"count is .* must be a whole number of at least 0"):
        ACCOUNTANTS[name].epsilon([(step(0.1, 1), count)], 1e-5)


@pytest.mark.parametrize("order", [1, 0.5, -3, NAN, math.inf])
def test_a_bad_order_is_named(order: float) -> None:
    with pytest.raises(InvalidArgument, match=r"order is .* must be a finite number above 1"):
        checked_orders([2.0, order])


def test_an_entry_that_is_no_pair_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="an entry of the history"):
        canonical([step(0.1, 1)])


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        {"mechanism": "unknown"},
        {"mechanism": "laplace"},
        {"mechanism": "laplace", "epsilon": 1, "extra": 2},
        {"mechanism": "laplace", "epsilon": -1},
        {"mechanism": ["laplace"], "epsilon": 1},
    ],
)
def test_a_wrong_document_is_refused(document: object) -> None:
    with pytest.raises(InvalidArgument):
        mechanism_from_json(document)


def test_json_is_readable() -> None:
    assert json.loads(json.dumps(Laplace(epsilon=0.5).to_json())) == {"mechanism": "laplace", "epsilon": 0.5}


def test_canonical_form_merges_and_drops() -> None:
    history = [(step(0.1, 1), 3), (step(1, 2), 4), (step(0, 1), 9), (step(0.1, 1), 2), (Laplace(epsilon=1), 0)]
    assert canonical(history) == ((Gaussian(noise_multiplier=1), 1), (step(0.1, 1), 5))


def test_counts_beyond_the_precision_of_floats_stay_exact() -> None:
    count = 2**53 + 1
    assert canonical([(step(0.1, 1), count)])[0][1] == count


@pytest.mark.parametrize("name", sorted(ACCOUNTANTS))
def test_doing_nothing_costs_nothing(name: str) -> None:
    assert ACCOUNTANTS[name].epsilon([], 1e-5) == 0
    assert ACCOUNTANTS[name].epsilon([(step(0, 1), 10)], 1e-5) == 0
    assert ACCOUNTANTS[name].delta([], 0.5) == 0
