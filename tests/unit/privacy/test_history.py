"""Histories in one canonical form: the same privacy in fewer entries."""

import pytest
from histories import step

from dpal.errors import InvalidArgument
from dpal.privacy.history import canonical
from dpal.privacy.mechanisms import Gaussian, Laplace, Mechanism

NAN = float("nan")


def test_an_entry_that_is_no_pair_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="an entry of the history"):
        canonical([step(0.1, 1)])


def test_canonical_form_merges_and_drops() -> None:
    history = [(step(0.1, 1), 3), (step(1, 2), 4), (step(0, 1), 9), (step(0.1, 1), 2), (Laplace(epsilon=1), 0)]
    assert canonical(history) == ((Gaussian(noise_multiplier=1), 1), (step(0.1, 1), 5))


def test_counts_beyond_the_precision_of_floats_stay_exact() -> None:
    count = 2**53 + 1
    assert canonical([(step(0.1, 1), count)])[0][1] == count


@pytest.mark.parametrize("count", [-1, 1.5, NAN, "3", None])
def test_a_bad_count_is_named(count: object) -> None:
    with pytest.raises(InvalidArgument, match=r"count is .* must be a whole number of at least 0"):
        canonical([(step(0.1, 1), count)])


def test_gaussians_become_one_whose_precisions_add() -> None:
    """Noise 3 and 4: 1/9 + 1/16 = 25/144, so one Gaussian of noise 12/5."""
    ((kind, count),) = canonical([(Gaussian(noise_multiplier=3), 1), (step(1.0, 4), 1)])
    assert count == 1 and kind.noise_multiplier == pytest.approx(2.4, rel=1e-15)


def test_a_single_gaussian_keeps_every_digit() -> None:
    assert canonical([(Gaussian(noise_multiplier=0.1 + 0.2), 1)]) == ((Gaussian(noise_multiplier=0.1 + 0.2), 1),)


def test_it_is_done_once_and_does_not_depend_on_the_order() -> None:
    entries = [(step(0.1, 1), 3), (Laplace(epsilon=1), 2), (step(0.2, 1), 1)]
    once = canonical(entries)
    assert canonical(once) is once
    assert canonical(reversed(entries)) == once


@pytest.mark.parametrize(
    "mechanism", [step(0.2, 2), step(0.05, 2), step(0.1, 1), step(1, 3), step(0, 1), Laplace(epsilon=1)]
)
@pytest.mark.parametrize("times", [0, 4])
def test_a_history_that_continues_is_the_same_as_one_made_at_once(mechanism: Mechanism, times: int) -> None:
    before = canonical([(step(0.1, 1), 3), (Gaussian(noise_multiplier=5), 1), (Laplace(epsilon=1), 2)])
    longer = before.then(mechanism, times)
    assert longer == canonical([*before, (mechanism, times)])
    if longer.before is not None:
        assert (longer.before, longer.last) == (before, (mechanism, times))


def test_only_the_last_histories_of_a_line_are_kept() -> None:
    first = canonical([(step(0.1, 1), 3)])
    second = first.then(step(0.2, 2), 1)
    third = second.then(step(0.3, 3), 1)
    fourth = third.then(step(0.4, 4), 1)
    assert fourth.before is third and third.before is second and second.before is None
