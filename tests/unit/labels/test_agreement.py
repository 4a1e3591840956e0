"""Agreement beyond chance, against worked examples and plain definitions."""

import random
from itertools import permutations

import pytest

from dpal.labels.agreement import alpha, cohens_kappa, kappas, krippendorffs_alpha


def test_cohens_example() -> None:
    # Two people, 50 proposals: 20 both yes, 5 and 10 apart, 15 both no. Observed 0.7, by chance 0.5.
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert cohens_kappa(pairs) == pytest.approx(0.4)


def test_krippendorffs_example() -> None:
    # Krippendorff (2011), nominal data of two observers: 0.095.
    first, second = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert krippendorffs_alpha(list(zip(first, second, strict=True))) == pytest.approx(0.095, abs=5e-4)


def plain_alpha(units) -> float:
    """1 − observed / expected disagreement, by counting pairs."""
    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit]
    observed = sum(sum(a != b for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in units) / len(values)
    expected = sum(a != b for a, b in permutations(values, 2)) / (len(values) * (len(values) - 1))
    return 1 - observed / expected


@pytest.mark.parametrize("seed", range(5))
def test_alpha_equals_its_definition(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    units = [[rng.randrange(3) for _ in range(rng.randrange(0, 5))] for _ in range(30)]
    assert krippendorffs_alpha(units) == pytest.approx(plain_alpha(units))


def test_nothing_to_compare() -> None:
    assert cohens_kappa([]) is None
    assert cohens_kappa([("a", "a"), ("a", "a")]) is None
    assert krippendorffs_alpha([["a"], ["b"]]) is None
    assert krippendorffs_alpha([["a", "a"]]) is None
    assert kappas({}) == {} and alpha({}) is None


def test_each_two_people_are_compared_on_what_both_answered() -> None:
    answers = {"1": {"A": 0, "B": 0}, "2": {"A": 1, "B": 1, "C": 0}, "3": {"B": 1}, "4": {"A": 0, "C": 0}}
    assert kappas(answers) == {("A", "B"): (2, 1.0), ("A", "C"): (2, 0.0), ("B", "C"): (1, 0.0)}
    assert alpha(answers) == pytest.approx(plain_alpha([[0, 0], [1, 1, 0], [0, 0]]))
