"""What the two promises say, and the numbers that may be shown: planned ones, never real ones."""

import dataclasses

import pytest
from settings import SMALL

import dpal
from dpal.planning.promises import WORDS, by_phase, expected_labels, expected_number
from dpal.selection.selection import INSIDE, PROMISES, RELEASED

CUT = dpal.plan(**SMALL)
THRESHOLD = dpal.plan(**SMALL, selections=RELEASED)


def test_each_promise_has_all_its_words() -> None:
    assert set(WORDS) == set(PROMISES)
    for words in WORDS.values():
        assert all(getattr(words, field.name) for field in dataclasses.fields(words))
        assert words.in_full == f"{words.short} {words.meaning}"


def test_only_one_of_them_releases_who_was_chosen() -> None:
    assert any("ids of the records that were selected" in line for line in WORDS[RELEASED].released)
    assert not any("ids" in line for line in WORDS[INSIDE].released)
    assert any("which records were selected" in line for line in WORDS[INSIDE].not_released)
    for words in WORDS.values():
        assert not set(words.released) & set(words.not_released)


def test_a_cut_is_expected_to_ask_for_what_it_aims_at() -> None:
    """It aims below the query size, so that this is rarely exceeded; other kinds aim at the query size."""
    for selection in CUT.selections:
        assert expected_number(selection) == selection.wanted < selection.query_size
    assert [expected_number(selection) for selection in THRESHOLD.selections] == [300, 100]


@pytest.mark.parametrize("plan", [CUT, THRESHOLD], ids=["inside", "released"])
def test_labels_by_phase_add_up(plan: dpal.Plan) -> None:
    first, second, third = expected_labels(plan)
    assert first == 400
    assert by_phase(plan, (first, second, third)) == [400, 400 + second, 400 + second + third]
    # Phases whose groups are not there yet are left out.
    assert by_phase(plan, (first, second)) == [400, 400 + second]
    assert by_phase(plan, ()) == []
