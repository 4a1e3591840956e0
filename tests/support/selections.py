"""Every kind of selection with parameters of the test's own choice."""

from dpal.randomness import SeededRandomness
from dpal.selection import (
    ExponentialSelection,
    GaussianSelection,
    HighestScores,
    LaplaceSelection,
    RandomSelection,
    SampledGaussianSelection,
    Selection,
    ThresholdSelection,
)


def seeded(seed: int = 3) -> SeededRandomness:
    return SeededRandomness(seed=seed, nothing_is_private=True)


def threshold(
    query_size: int,
    *,
    high: float,
    low: float,
    epsilon: float,
    above: float,
    unlabelled: int = 5000,
    kind: type[ThresholdSelection] = ThresholdSelection,
) -> ThresholdSelection:
    return kind(
        query_size=query_size,
        unlabelled=unlabelled,
        choice_epsilon=1.0,
        fraction_above=above,
        threshold_epsilon=epsilon,
        probability_high=high,
        probability_low=low,
    )


def every_selection(query_size: int = 500, unlabelled: int = 5000) -> list[Selection]:
    sizes = {"query_size": query_size, "unlabelled": unlabelled}
    return [
        RandomSelection(**sizes),
        HighestScores(**sizes),
        LaplaceSelection(**sizes, epsilon=2.0, grid_steps=1024),
        GaussianSelection(**sizes, noise_multiplier=1.0, grid_steps=1024),
        SampledGaussianSelection(**sizes, noise_multiplier=1.0, grid_steps=1024, participation=0.7),
        ExponentialSelection(**sizes, weight_epsilon=2.0),
        threshold(query_size, high=0.2, low=0.02, epsilon=0.05, above=0.45, unlabelled=unlabelled),
    ]
