"""What several records of one person cost, where the unit of privacy is one record: for certificates and tables."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from rich.table import Table

from dpal.campaign.ledger import Ledger
from dpal.errors import InvalidArgument
from dpal.planning.plan import Plan, Schedule
from dpal.planning.setting import RECORD, Setting
from dpal.planning.several_records import epsilon_of_several
from dpal.privacy import checks
from dpal.privacy.rounding import rounded_up
from dpal.privacy.several_records import DIRECT, GENERIC
from dpal.reports.plain_words import exactly, guess_sentence, percent_at_most, right_guesses

# What a certificate states, as far as the pool has so many.
RECORDS = (2, 5, 10, 30)
# ε with this many decimals, rounded up; a stated ε may be this much above the recomputed one.
_DIGITS, _SLACK = 4, 2e-4
IN_WORDS = (
    "Every record is protected by itself. This is the ε of a person with so many records in the pool, whichever they "
    "are, with the δ of the campaign, for everything released so far. The bound is proven "
    "(docs/maths/group-privacy.md) where, whenever a phase is trained, records of other people have labels too."
)
BOUNDS = {
    DIRECT: "direct: the records are accounted for together, step by step, by privacy-loss distributions (PLD)",
    GENERIC: "generic: the bound for one record is applied once for each record",
}
RIGHT_GUESSES = (
    "Right guesses: how often someone who would guess right 50% of the time whether a certain person's records were "
    "used could guess right, at most."
)
NOTHING = "No ε is proven at this δ, so nothing is promised to them."


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralRecordsRow:
    """The ε of someone with so many records at a δ, rounded up; None if none is proven."""

    records: int
    epsilon: float | None
    delta: float
    bound: str

    @property
    def in_words(self) -> str:
        if self.epsilon is None:
            return NOTHING
        if self.records == 1:
            return guess_sentence(self.epsilon, self.delta)
        return guess_sentence(self.epsilon, self.delta, whether="a certain person's records were used")

    def to_json(self) -> dict[str, Any]:
        return {"records": self.records, "epsilon": self.epsilon, "bound": self.bound, "in_words": self.in_words}


def rows_of(setting: Setting, schedule: Schedule, records: Sequence[int]) -> tuple[SeveralRecordsRow, ...]:
    """One row for each number of records, from the numbers of the schedule alone."""
    if setting.unit != RECORD:
        allowed = f"a plan for single records: this one protects a {setting.unit} with all of their records"
        raise InvalidArgument("PLAN|CAMPAIGN", f"for a {setting.unit}", allowed)
    spent = [epsilon_of_several(setting, schedule, number) for number in records]
    return tuple(
        SeveralRecordsRow(
            records=each.records,
            epsilon=rounded_up(each.epsilon, _DIGITS) if math.isfinite(each.epsilon) else None,
            delta=setting.target_delta,
            bound=each.bound,
        )
        for each in spent
    )


def rows_of_plan(plan: Plan, records: Sequence[int]) -> tuple[SeveralRecordsRow, ...]:
    """What the whole plan may spend."""
    return rows_of(plan.setting, plan.schedule, records)


def rows_of_charges(plan: Plan, ledger: Ledger, records: Sequence[int]) -> tuple[SeveralRecordsRow, ...]:
    """What was charged so far."""
    mean = ledger.mean_noise_multiplier
    schedule = Schedule(phases=ledger.phases, selections=ledger.selections, mean_noise_multiplier=mean)
    return rows_of(replace(plan.setting, mean_noise_multiplier=mean), schedule, records)


def certified_rows(plan: Plan, ledger: Ledger) -> tuple[SeveralRecordsRow, ...]:
    """The rows of a certificate. None where a person with all of their records is the unit."""
    if plan.setting.unit != RECORD:
        return ()
    return rows_of_charges(plan, ledger, [number for number in RECORDS if number <= plan.setting.pool_size])


def section_of(rows: Sequence[SeveralRecordsRow]) -> dict[str, Any] | None:
    """A certificate's section about several records. None where there is nothing to say about them."""
    if not rows:
        return None
    return {"in_words": IN_WORDS, "bounds": dict(BOUNDS), "rows": [row.to_json() for row in rows]}


def checked_rows(section: object, true: Sequence[SeveralRecordsRow]) -> tuple[SeveralRecordsRow, ...]:
    """The rows as a certificate states them. An ε may be stated higher by rounding, but never lower."""
    stated = () if section is None else cast("Mapping[str, Any]", section)["rows"]
    if len(stated) != len(true):
        raise InvalidArgument("the length of the certificate: several_records", len(stated), str(len(true)))
    return tuple(
        replace(row, epsilon=_checked_epsilon(number, entry["epsilon"], row.epsilon))
        for number, (entry, row) in enumerate(zip(stated, true, strict=True))
    )


def _checked_epsilon(number: int, stated: object, true: float | None) -> float | None:
    name = f"the certificate: several_records: rows[{number}]: epsilon"
    if true is None:
        if stated is not None:
            raise InvalidArgument(name, stated, "null: no ε is proven")
        return None
    allowed = f"{true!r}, rounded up to {_DIGITS} decimals"
    epsilon = checks.number(name, stated, allowed)
    # With more decimals it would be shown rounded, perhaps down.
    if not true <= epsilon <= true + _SLACK or round(epsilon, _DIGITS) != epsilon:
        raise InvalidArgument(name, stated, allowed)
    return epsilon


def shown(row: SeveralRecordsRow) -> str:
    """ε as people read it."""
    return "none proven" if row.epsilon is None else f"{row.epsilon:.{_DIGITS}f}"


def several_records_table(title: str, rows: Sequence[SeveralRecordsRow]) -> Table:
    """Rows for a terminal."""
    table = Table(title=title, title_justify="left")
    delta = exactly(rows[0].delta) if rows else ""
    for heading in ("records of one person", f"ε at δ = {delta}", "right guesses, at most", "bound"):
        table.add_column(heading, justify="right")
    for row in rows:
        guesses = "100%" if row.epsilon is None else percent_at_most(right_guesses(row.epsilon, row.delta))
        table.add_row(f"{row.records:,}", shown(row), guesses, row.bound)
    return table
