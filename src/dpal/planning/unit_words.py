"""Words for what a promise protects one of: a record, or a patient with several records."""

from dpal.planning.setting import RECORD

_PLURALS = {"person": "people", "child": "children"}


def plural(unit: str) -> str:
    """More than one of this unit."""
    return _PLURALS.get(unit, f"{unit}s")


def adjacency(unit: str) -> str:
    """What two neighbouring pools differ in."""
    return "one record replaced by a blank" if unit == RECORD else f"one {unit} blanked out, with all records"


def unit_sentence(unit: str) -> str | None:
    """What the unit means for everything else that is said about a record. None where the unit is a record."""
    if unit == RECORD:
        return None
    return (
        f"The promise is for one {unit} with all of their records together. Wherever this says record, it means that: "
        f"all sizes count {plural(unit)}, and how many records each has stays inside."
    )


def whether_used(unit: str) -> str:
    """What someone may want to know about one of them."""
    return "a certain record was used" if unit == RECORD else f"the records of a certain {unit} were used"
