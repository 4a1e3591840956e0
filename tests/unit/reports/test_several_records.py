"""Rows of certificates and tables: what they say, and that no stated ε is too low."""

import json
from typing import Any

import pytest
from small_campaigns import linear_plan

from dpal.campaign.ledger import Ledger
from dpal.errors import InvalidArgument
from dpal.planning.several_records import epsilon_of_several
from dpal.reports.several_records import (
    NOTHING,
    SeveralRecordsRow,
    certified_rows,
    checked_rows,
    rows_of_charges,
    rows_of_plan,
    section_of,
    shown,
)

PLAN = linear_plan(accountant="pld")
CHARGED = Ledger(phases=PLAN.phases, selections=PLAN.selections)


def test_rows_are_rounded_up_and_as_many_as_the_pool_allows() -> None:
    rows = certified_rows(PLAN, CHARGED)
    assert [row.records for row in rows] == [2, 5, 10]
    for row in rows:
        true = epsilon_of_several(PLAN.setting, PLAN.schedule, row.records).epsilon
        assert row.epsilon is not None and true <= row.epsilon <= true + 1e-4
        assert f"{row.epsilon:.4f}" == shown(row)
    assert rows == rows_of_plan(PLAN, (2, 5, 10))
    assert "a certain person's records were used" in rows[0].in_words


def test_what_was_charged_so_far_is_less() -> None:
    nothing = rows_of_charges(PLAN, Ledger(phases=(), selections=()), (2,))
    first = rows_of_charges(PLAN, Ledger(phases=PLAN.phases[:1], selections=()), (2,))
    waiting = rows_of_charges(PLAN, Ledger(phases=PLAN.phases[:1], selections=PLAN.selections[:1]), (2,))
    everything = rows_of_plan(PLAN, (2,))
    epsilons = [rows[0].epsilon for rows in (nothing, first, waiting, everything)]
    assert epsilons[0] == 0.0
    assert None not in epsilons and epsilons == sorted(epsilons, key=float)


def stated(**changed: Any) -> dict[str, Any]:
    section = json.loads(json.dumps(section_of(certified_rows(PLAN, CHARGED))))
    section["rows"][1] |= changed
    return section


def test_a_stated_epsilon_may_be_higher_by_rounding_only() -> None:
    rows = certified_rows(PLAN, CHARGED)
    assert checked_rows(stated(), rows) == rows
    epsilon = rows[1].epsilon
    assert epsilon is not None
    above = round(epsilon + 1e-4, 4)
    assert checked_rows(stated(epsilon=above), rows)[1].epsilon == above
    for wrong in (round(epsilon - 1e-4, 4), epsilon + 1e-3, epsilon + 1e-6, 0.0, None, True, "8", float("nan")):
        with pytest.raises(InvalidArgument, match=r"several_records: rows\[1\]: epsilon"):
            checked_rows(stated(epsilon=wrong), rows)
    with pytest.raises(InvalidArgument, match="length"):
        checked_rows({"rows": stated()["rows"][:2]}, rows)


def test_no_epsilon_is_said_as_such() -> None:
    row = SeveralRecordsRow(records=30, epsilon=None, delta=1e-9, bound="generic")
    assert (row.in_words, shown(row)) == (NOTHING, "none proven")
    assert checked_rows({"rows": [{"epsilon": None}]}, [row]) == (row,)
    with pytest.raises(InvalidArgument, match="null"):
        checked_rows({"rows": [{"epsilon": 8.0}]}, [row])
