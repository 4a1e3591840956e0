import pytest

from dpal.planning.promises import WORDS
from dpal.reports.assumptions import ASSUMPTIONS, assumptions_of, per_unit


@pytest.mark.parametrize("promise", ["inside", "released"])
def test_the_accountant_and_foreign_code_add_theirs(promise: str) -> None:
    both = [*WORDS[promise].assumptions, *per_unit("record"), *ASSUMPTIONS]
    assert assumptions_of(promise=promise, accountant="rdp", foreign_code=(), unit="record") == both
    code = ("clinic.models:net", "clinic.scores:Own")
    stated = assumptions_of(promise=promise, accountant="pld", foreign_code=code, unit="record")
    assert stated[:-2] == both
    assert "not proven" in stated[-2]
    assert "not part of dpal" in stated[-1]
    assert "clinic.models:net, clinic.scores:Own" in stated[-1]


def test_each_promise_takes_its_own_for_granted() -> None:
    inside, released = (
        " ".join(assumptions_of(promise=promise, accountant="rdp", foreign_code=(), unit="record"))
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


def test_the_unit_is_what_is_compared() -> None:
    records, patients = (
        " ".join(assumptions_of(promise="inside", accountant="rdp", foreign_code=(), unit=unit))
        for unit in ("record", "patient")
    )
    assert "The unit of privacy is one record" in records
    assert "The unit of privacy is one record" not in patients
    assert "one patient, with all of their records" in patients
    assert "named by the operator" in patients


def test_what_stays_inside_is_true_of_pools_in_a_store_and_of_workers_on_a_cluster() -> None:
    """Records of a large pool are in an object store, and workers of a cluster read and score them."""
    stated = " ".join(assumptions_of(promise="inside", accountant="rdp", foreign_code=(), unit="record"))
    assert "stay on the operator's machines" in stated and "stay on the machine " not in stated
