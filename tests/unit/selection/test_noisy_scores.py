import pytest
from selections import every_selection
from settings import SMALL

import dpal
from dpal.selection import (
    Entropy,
    ExponentialSelection,
    GaussianSelection,
    HighestScores,
    LaplaceSelection,
    LeastConfidence,
    RandomSelection,
    SampledGaussianSelection,
)

SIZES = {"query_size": 1000, "unlabelled": 20_000}


def test_lifts_are_in_order() -> None:
    assert RandomSelection(**SIZES).lift() == 0
    laplace = [LaplaceSelection(**SIZES, epsilon=epsilon, grid_steps=1024).lift() for epsilon in (0.1, 1.0, 10.0)]
    assert 0 < laplace[0] < laplace[1] < laplace[2] < HighestScores(**SIZES).lift() == 0.95
    one_shot = [ExponentialSelection(**SIZES, weight_epsilon=epsilon).lift() for epsilon in (0.1, 1.0, 10.0)]
    assert 0 < one_shot[0] < one_shot[1] < one_shot[2] < 0.95
    # The right tails of Gumbel and Laplace noise are alike, so for small queries the two selections are, too.
    assert one_shot[:2] == pytest.approx(laplace[:2], rel=0.1)
    gaussian = GaussianSelection(**SIZES, noise_multiplier=2.0, grid_steps=1024)
    sampled = SampledGaussianSelection(**SIZES, noise_multiplier=2.0, grid_steps=1024, participation=0.7)
    assert 0 < sampled.lift() < gaussian.lift()


def test_only_noise_for_a_range_is_scaled_to_the_clip() -> None:
    clipped = {selection.name: selection.largest_score(1.0, 0.8) for selection in every_selection()}
    noisy = {"laplace", "gaussian", "sampled-gaussian", "exponential"}
    assert {name for name, largest in clipped.items() if largest == 0.8} == noisy
    assert (Entropy(classes=10).clip, LeastConfidence(classes=4).clip) == (0.8, 0.75)


def test_selections_keep_within_their_share() -> None:
    # One share of ε 2 over two selections: what each releases.
    plan = dpal.plan(**SMALL, accounting="basic", selection="laplace", selection_epsilon=2.0)
    assert [selection.epsilon for selection in plan.selections] == [1.0, 1.0]
