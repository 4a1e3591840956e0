"""One helper for all statistical tests: it fails by chance with a probability of one in a million."""

from scipy.stats import binomtest, chi2

FALSE_FAILURE = 1e-6


def rate_is(successes: int, trials: int, probability: float) -> bool:
    """Whether so many successes are likely enough for coins of this probability."""
    return float(binomtest(successes, trials, probability).pvalue) >= FALSE_FAILURE


def counts_are(observed: list[int], probabilities: list[float]) -> bool:
    """Whether so many of each kind are likely enough for these probabilities (chi-squared)."""
    total = sum(observed)
    expected = [total * probability for probability in probabilities]
    assert min(expected) >= 5, "too few expected of one kind for this test"
    statistic = sum((seen - wanted) ** 2 / wanted for seen, wanted in zip(observed, expected, strict=True))
    return float(chi2.sf(statistic, len(observed) - 1)) >= FALSE_FAILURE
