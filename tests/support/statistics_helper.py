"""One helper for all statistical tests: it fails by chance with a probability of one in a million."""

from scipy.stats import binomtest

FALSE_FAILURE = 1e-6


def rate_is(successes: int, trials: int, probability: float) -> bool:
    """Whether so many successes are likely enough for coins of this probability."""
    return float(binomtest(successes, trials, probability).pvalue) >= FALSE_FAILURE
