"""Several answers become one label by the stated rule, and by nothing else."""

import pytest

from dpal.labels.answers import CANNOT_TELL, SKIPPED
from dpal.labels.decisions import DIFFER, WAITS, Decision, decided
from dpal.labels.people import ARBITER, UNANIMOUS, Arrangement, Opinion, Person

PEOPLE = (*(Person(name=name) for name in "ABC"), Person(name="R", role=ARBITER))


def outcome(answers, asked: str = "ABC", rule: str = "majority") -> Decision:
    opinions = {
        name: Opinion(
            number=number,
            at="",
            person=name,
            who=name,
            role=ARBITER if name == "R" else "expert",
            question="q",
            answer=answer,
        )
        for number, (name, answer) in enumerate(answers.items(), start=1)
    }
    return decided(opinions, tuple(asked), Arrangement(people=PEOPLE, rule=rule))


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"A": 1}, Decision(None, WAITS)),
        ({"A": 1, "B": 1}, Decision(None, WAITS)),
        ({"A": 1, "B": 1, "C": 0}, Decision(1)),
        ({"A": 1, "B": 0, "C": SKIPPED}, Decision(None, DIFFER)),
        ({"A": 1, "B": SKIPPED, "C": CANNOT_TELL}, Decision(1)),
        ({"A": SKIPPED, "B": SKIPPED, "C": CANNOT_TELL}, Decision(CANNOT_TELL)),
        ({"A": SKIPPED, "B": SKIPPED, "C": SKIPPED}, Decision(SKIPPED)),
        # Taken back.
        ({"A": 1, "B": 1, "C": None}, Decision(None, WAITS)),
        ({"A": 0, "R": 1}, Decision(1)),
        ({"A": 0, "B": 0, "C": 0, "R": None}, Decision(0)),
        ({"A": 0, "B": 1, "C": 0, "R": CANNOT_TELL}, Decision(CANNOT_TELL)),
        ({"A": (1.0, 0.0), "B": (1.0, 1.0), "C": (0.0, 1.0)}, Decision((1.0, 1.0))),
        ({"A": (1.0, 0.0), "B": (1.0, 1.0), "C": SKIPPED}, Decision(None, DIFFER)),
    ],
)
def test_the_majority(answers, expected: Decision) -> None:
    assert outcome(answers) == expected


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"A": 1, "B": 1, "C": 1}, Decision(1)),
        ({"A": 1, "B": 1, "C": 0}, Decision(None, DIFFER)),
        ({"A": 1, "B": 1, "C": SKIPPED}, Decision(None, DIFFER)),
    ],
)
def test_unanimity(answers, expected: Decision) -> None:
    assert outcome(answers, rule=UNANIMOUS) == expected


def test_one_expert_is_enough_where_one_was_asked() -> None:
    assert outcome({"A": 1}, asked="A") == Decision(1)
    # Questions that moved to another expert since: what was answered counts.
    assert outcome({"A": 1}, asked="B") == Decision(1)
    assert outcome({}, asked="") == Decision(None, WAITS)
