import pytest

import dpal
from dpal.planning.promises import WORDS, by_phase, expected_labels
from dpal.selection.selection import PROMISES

LARGE = {
    "target_epsilon": 8,
    "pool_size": 50_000,
    "initial_size": 10_000,
    "query_sizes": (15_000,),
    "accountant": "rdp",
}


def test_each_promise_has_words_of_its_own() -> None:
    assert tuple(WORDS) == PROMISES
    inside, released = (WORDS[promise] for promise in PROMISES)
    assert "must never leave the operator" in inside.meaning and "copy of a record" in inside.meaning
    # What the one releases, the other keeps.
    assert any("ids of the records" in line for line in released.released)
    assert not any("ids" in line for line in inside.released)
    assert any("which records were selected" in line for line in inside.not_released)
    assert inside.in_full.startswith(inside.short) and inside.in_full.endswith(inside.meaning)


@pytest.mark.parametrize(("selection", "fewer"), [("cut", True), ("threshold", False), ("random", False)])
def test_a_cut_is_expected_to_fall_a_little_short(selection: str, fewer: bool) -> None:
    plan = dpal.plan(**LARGE, selection=selection, planner="step-amplification")
    (number,) = (planned.expected_number for planned in plan.selections)
    assert (number < 15_000) is fewer and number > 0.95 * 15_000
    assert expected_labels(plan) == (10_000, number)
    assert by_phase(plan, expected_labels(plan)) == [10_000, 10_000 + number]


def test_phases_whose_groups_are_not_there_yet_are_left_out() -> None:
    plan = dpal.plan(**LARGE)
    assert by_phase(plan, (10_000,)) == [10_000]
