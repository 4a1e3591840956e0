from dpal.reports.assumptions import ASSUMPTIONS, assumptions_of


def test_the_accountant_and_foreign_code_add_theirs() -> None:
    assert assumptions_of(accountant="rdp", foreign_code=()) == list(ASSUMPTIONS)
    stated = assumptions_of(accountant="pld", foreign_code=("clinic.models:net", "clinic.scores:Own"))
    assert stated[:-2] == list(ASSUMPTIONS)
    assert "not proven" in stated[-2]
    assert "not part of dpal" in stated[-1]
    assert "clinic.models:net, clinic.scores:Own" in stated[-1]
