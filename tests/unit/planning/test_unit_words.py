"""Words for what a promise protects one of."""

import dpal
from dpal.planning.unit_words import adjacency, plural, unit_sentence


def test_plurals() -> None:
    assert [plural(unit) for unit in ("record", "patient", "person")] == ["records", "patients", "people"]


def test_nothing_is_said_where_the_unit_is_a_record() -> None:
    assert unit_sentence("record") is None
    assert adjacency("record") == "one record replaced by a blank"


def test_a_plan_says_whom_it_protects() -> None:
    plan = dpal.plan(target_epsilon=8, pool_size=2_000, accountant="rdp", unit="patient")
    assert plan.setting.unit == "patient"
    words = unit_sentence(plan.setting.unit)
    assert words is not None
    assert "one patient with all of their records" in words
    assert "patients" in words
    assert "patient" in adjacency("patient")
    # The same numbers: what is counted is units.
    plain = dpal.plan(target_epsilon=8, pool_size=2_000, accountant="rdp")
    assert plan.phases == plain.phases
    assert plan.epsilon == plain.epsilon
