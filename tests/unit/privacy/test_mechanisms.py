import json
import math

import pytest
from histories import step

from dpal.errors import InvalidArgument
from dpal.privacy.mechanisms import (
    BernoulliSelection,
    Gaussian,
    Laplace,
    PoissonSampledGaussian,
    mechanism_from_json,
)

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
