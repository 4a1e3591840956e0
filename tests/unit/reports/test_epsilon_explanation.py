"""What is said about an ε before there is a plan: odds, several records, and arguments that make no sense."""

import json
import math

import numpy as np
import pytest
from scipy.stats import norm

from dpal.errors import InvalidArgument
from dpal.privacy.group_privacy import group_delta
from dpal.reports.epsilon_explanation import (
    EPSILONS,
    explain_epsilon,
    largest_belief,
    several_records,
    several_sentences,
)
from dpal.reports.plain_words import right_guesses

PROMISES = [(0.1, 1e-5), (1.0, 1e-5), (1.0, 0.1), (4.0, 1e-3), (8.0, 1e-5)]
PRIORS = [0.5, 0.01, 1e-4, 0.9]


@pytest.mark.parametrize(("epsilon", "delta"), PROMISES)
def test_from_one_half_the_largest_belief_is_the_share_of_right_guesses(epsilon: float, delta: float) -> None:
    assert largest_belief(epsilon, delta, 0.5) == pytest.approx(right_guesses(epsilon, delta), rel=1e-14)


def belief_with_the_worst_neighbours(epsilon: float, delta: float, prior: float) -> float:
    """By Bayes' rule, outcome by outcome: the truth with probability δ, otherwise the answer that says most."""
    used, blank = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))
    after_the_answer = prior * used / (prior * used + (1 - prior) * blank)
    return delta * 1.0 + (1 - delta) * after_the_answer


@pytest.mark.parametrize(("epsilon", "delta"), PROMISES)
@pytest.mark.parametrize("prior", PRIORS)
def test_the_largest_belief_is_bayes_rule_for_the_worst_neighbours(epsilon: float, delta: float, prior: float) -> None:
    worst = belief_with_the_worst_neighbours(epsilon, delta, prior)
    assert largest_belief(epsilon, delta, prior) == pytest.approx(worst, rel=1e-12)


def excess_and_limit(belief_limit: float, shift: float, delta: float, prior: float) -> tuple[float, float]:
    """Over the outputs of a Gaussian mechanism: how far beliefs exceed a limit on average, and how far they may."""
    points = np.linspace(-12, 12 + shift, 400_001)
    used, blank = norm.pdf(points, shift), norm.pdf(points)
    together = prior * used + (1 - prior) * blank
    excess = np.trapezoid(np.maximum(0.0, prior * used / together - belief_limit) * together, points)
    return float(excess), prior * (1 - belief_limit) * delta


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(("shift", "epsilon"), [(0.5, 1.0), (1.0, 2.0), (1.0, 4.0)])
def test_beliefs_exceed_the_limit_by_delta_at_most(shift: float, epsilon: float, prior: float) -> None:
    """The theorem of docs/maths/odds.md, on a mechanism that meets it with equality. A smaller limit is caught."""
    delta = norm.cdf(shift / 2 - epsilon / shift) - math.exp(epsilon) * norm.cdf(-shift / 2 - epsilon / shift)
    excess, allowed = excess_and_limit(largest_belief(epsilon, 0.0, prior), shift, delta, prior)
    assert excess == pytest.approx(allowed, rel=1e-4)
    excess, allowed = excess_and_limit(largest_belief(0.9 * epsilon, 0.0, prior), shift, delta, prior)
    assert excess > 1.05 * allowed


def test_the_table_has_the_asked_epsilon_once_and_in_order() -> None:
    for asked in (8.0, 3.0, 0.01, 100.0):
        rows = [row.epsilon for row in explain_epsilon(epsilon=asked, delta=1e-5).worst_cases]
        assert rows == sorted({*EPSILONS, asked})


@pytest.mark.parametrize(
    ("epsilon", "delta", "records"), [(1.0, 1e-6, 3), (8.0, 1e-5, 2), (0.3, 1e-7, 7), (8, 1e-5, 5)]
)
def test_several_records_are_rounded_to_the_safe_side(epsilon: float, delta: float, records: int) -> None:
    several = several_records(epsilon, delta, records)
    assert group_delta(epsilon, delta, records) <= several.delta <= 1.01 * group_delta(epsilon, delta, records)
    assert several.epsilon_per_record <= epsilon / records * (1 + 1e-15)
    assert group_delta(several.epsilon_per_record, several.delta_per_record, records) <= delta
    assert group_delta(several.epsilon_per_record, 1.05 * several.delta_per_record, records) > delta


def said(**arguments: float) -> str:
    return " ".join(several_sentences(explain_epsilon(**arguments)))  # type: ignore[arg-type]


def test_several_records_in_words() -> None:
    words = said(epsilon=8, delta=1e-5, records_per_person=5)
    assert "someone has ε = 40 with a δ of 1 or more, and such a δ promises nothing to them" in words
    assert "plan with ε = 1.6 and δ = 1.32e-08 for each record" in words
    words = said(epsilon=1, delta=1e-6, records_per_person=3)
    assert "ε = 3, δ = 1.12e-05: a suspicion of 50% that their records were used can grow to at most 95.26%." in words
    assert "protects little" not in words
    words = said(epsilon=1, delta=1e-6, records_per_person=3, pool_size=100_000)
    assert "This protects little: δ = 1.12e-05 is above 1 / 100,000" in words
    assert "everyone who has one record only" in said(epsilon=8, delta=1e-5, records_per_person=1)
    assert "dpal explain --epsilon 8 --records-per-person 5" in said(epsilon=8, delta=1e-5)
    assert "Choose a smaller ε first." in said(epsilon=1000, delta=1e-5, records_per_person=2)
    assert "No plan can promise" in said(epsilon=8, delta=5e-324, records_per_person=5)


def test_a_large_epsilon_is_said_to_protect_little() -> None:
    explanation = explain_epsilon(epsilon=1000, delta=1e-5)
    assert explanation.protects_little == "This protects little: ε = 1000 is above 10."
    assert "ordinary records do far worse" not in explanation.worst_case
    assert "at most 100% likely" in explanation.rare_suspicion
    assert explain_epsilon(epsilon=8, delta=1e-5, pool_size=50_000).protects_little is None


def test_json_is_json() -> None:
    document = explain_epsilon(epsilon=1e6, delta=1e-5, pool_size=5000, records_per_person=5000).to_json()
    assert json.loads(json.dumps(document, allow_nan=False))["several_records"]["delta"] == 1.0
    assert len(document["published"]) == 4  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": 0.0}, "epsilon is 0.0, but must be a number above 0"),
        ({"epsilon": -1.0}, "epsilon is -1.0"),
        ({"epsilon": math.nan}, "epsilon is nan"),
        ({"epsilon": math.inf}, "epsilon is inf"),
        ({"epsilon": 2e6}, "larger ones protect little"),
        ({"delta": 0.0}, "delta is 0.0"),
        ({"delta": 1.0}, "delta is 1.0, but must be a number above 0 and below 1"),
        ({"delta": 0.01, "pool_size": 1000}, "delta is 0.01, but must be at most 1 / 1,000, the number of records"),
        ({"pool_size": 0}, "pool_size is 0, but must be a whole number of at least 1"),
        ({"records_per_person": 0}, "records_per_person is 0, but must be a whole number of at least 1"),
        ({"records_per_person": 6, "pool_size": 5}, "records_per_person is 6, but must be at most 5"),
    ],
)
def test_arguments_that_make_no_sense(changed: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        explain_epsilon(**{"epsilon": 8.0, "delta": 1e-5, **changed})  # type: ignore[arg-type]
