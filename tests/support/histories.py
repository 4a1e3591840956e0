"""Histories that several tests share."""

from dpal.privacy.mechanisms import PoissonSampledGaussian


def step(sampling_probability: float, noise_multiplier: float) -> PoissonSampledGaussian:
    return PoissonSampledGaussian(sampling_probability=sampling_probability, noise_multiplier=noise_multiplier)


# The sampling probabilities and steps of a campaign with 10,000 + 10,000 + 3,000 + 1,000 + 1,000 labels.
FIVE_PHASES = ((1 / 2, 60), (1 / 4, 120), (1 / 5, 150), (1 / 5, 150), (1 / 6, 180))
FIVE_PHASE_HISTORY = [(step(probability, 4.11), steps) for probability, steps in FIVE_PHASES]
