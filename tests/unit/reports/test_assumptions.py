import pytest

from dpal.planning.promises import WORDS
from dpal.reports.assumptions import ASSUMPTIONS, assumptions_of


@pytest.mark.parametrize("promise", ["inside", "released"])
def test_the_accountant_and_foreign_code_add_theirs(promise: str) -> None:
    both = [*WORDS[promise].assumptions, *ASSUMPTIONS]
    assert assumptions_of(promise=promise, accountant="rdp", foreign_code=()) == both
    code = ("clinic.models:net", "clinic.scores:Own")
    stated = assumptions_of(promise=promise, accountant="pld", foreign_code=code)
    assert stated[:-2] == both
    assert "not proven" in stated[-2]
    assert "not part of dpal" in stated[-1]
    assert "clinic.models:net, clinic.scores:Own" in stated[-1]


def test_each_promise_takes_its_own_for_granted() -> None:
    inside, released = (
        " ".join(assumptions_of(promise=promise, accountant="rdp", foreign_code=()))
        for promise in ("inside", "released")
    )
    for words in (
        "stay inside for good",
        "no deduplication",
        "never at a certain number",
        "on nothing else",
        "invoices",
    ):
        assert words in inside
        assert words not in released
    assert "drawn at random without looking" in inside
    assert "which records were chosen" in released
    assert "which records were chosen" not in inside
