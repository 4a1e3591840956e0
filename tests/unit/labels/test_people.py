"""Who is asked what: by the key and the question alone, evenly, and nearly the same when people come and go."""

from collections import Counter

import pytest

from dpal.errors import InvalidArgument
from dpal.labels.people import (
    ARBITER,
    EVERYONE,
    OFFICER,
    Arrangement,
    Opinion,
    Person,
    order_for,
    token_of,
)

KEY = b"k" * 32
QUESTIONS = [f"q{number}" for number in range(2000)]


def experts(*names: str, **changed) -> Arrangement:
    people = tuple(Person(name=name) for name in (*names,))
    return Arrangement(people=(*people, Person(name="Arb", role=ARBITER), Person(name="Off", role=OFFICER)), **changed)


def test_questions_are_split_evenly_and_only_among_experts() -> None:
    asked = Counter(experts("A", "B", "C").asked(question, KEY) for question in QUESTIONS)
    assert set(asked) == {("A",), ("B",), ("C",)}
    # 667 each; six standard deviations are 127.
    assert all(540 < count < 794 for count in asked.values())


def test_another_key_splits_them_otherwise() -> None:
    same = sum(
        experts("A", "B").asked(question, KEY) == experts("A", "B").asked(question, b"x") for question in QUESTIONS
    )
    assert 850 < same < 1150


def test_the_overlap_is_the_share_that_two_experts_answer() -> None:
    both = sum(len(experts("A", "B", "C", overlap=0.2).asked(question, KEY)) == 2 for question in QUESTIONS)
    assert 290 < both < 510
    assert all(len(experts("A", "B", overlap=1.0).asked(question, KEY)) == 2 for question in QUESTIONS)
    assert all(len(experts("A", overlap=1.0).asked(question, KEY)) == 1 for question in QUESTIONS)


def test_everyone_answers_everything() -> None:
    assert all(set(experts("A", "B", see=EVERYONE).asked(question, KEY)) == {"A", "B"} for question in QUESTIONS)


def test_a_new_expert_takes_questions_over_and_moves_no_others() -> None:
    before, after = experts("A", "B"), experts("A", "B").with_person(Person(name="C"))
    moved = [after.asked(q, KEY) for q in QUESTIONS if before.asked(q, KEY) != after.asked(q, KEY)]
    assert set(moved) == {("C",)}
    assert 540 < len(moved) < 794
    assert after.without("C") == before


def test_nobody_is_asked_where_there_is_no_expert() -> None:
    assert experts().asked("q", KEY) == ()


def test_orders_differ_between_people_and_are_drawn_once() -> None:
    by_a, by_b = (sorted(QUESTIONS, key=lambda q, name=name: order_for(name, q, KEY)) for name in ("A", "B"))
    assert by_a != by_b
    assert by_a == sorted(set(QUESTIONS), key=lambda question: order_for("A", question, KEY))
    assert by_a != QUESTIONS


def test_a_token_ends_with_a_new_generation_another_role_or_key() -> None:
    tokens = {
        token_of(Person(name="A"), KEY),
        token_of(Person(name="B"), KEY),
        token_of(Person(name="A", generation=1), KEY),
        token_of(Person(name="A", role=ARBITER), KEY),
        token_of(Person(name="A"), b"x"),
        token_of(Person(name="A", identity=1), KEY),
    }
    assert len(tokens) == 6
    assert token_of(Person(name="A"), KEY) == token_of(Person(name="A"), KEY)


def test_names_that_run_together_do_not_share_a_token() -> None:
    # ("ab", "c") and ("a", "bc") must not be hashed alike.
    assert order_for("ab", "c", KEY) != order_for("a", "bc", KEY)


@pytest.mark.parametrize("name", ["", " A", "A\n", "A" * 61])
def test_names_are_short_and_plain(name: str) -> None:
    with pytest.raises(InvalidArgument, match="name of a person"):
        Person(name=name)


@pytest.mark.parametrize(
    "changed",
    [{"see": "nobody"}, {"overlap": 1.5}, {"overlap": float("nan")}, {"overlap": True}, {"rule": "dice"}],
)
def test_wrong_arrangements_are_refused(changed) -> None:
    with pytest.raises(InvalidArgument):
        Arrangement(**changed)


def test_two_people_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="different names"):
        Arrangement(people=(Person(name="Kim"), Person(name="kim")))
    with pytest.raises(InvalidArgument, match="role"):
        Person(name="A", role="boss")


def test_both_read_back_as_themselves() -> None:
    arrangement = experts("A", "B", overlap=0.25, rule="unanimous")
    assert Arrangement.from_json(arrangement.to_json()) == arrangement
    for answer in (1, (0.0, 1.0), "skip", None):
        opinion = Opinion(
            number=3, at="now", person="A", who="1", role="expert", question="q", answer=answer, note="blurred"
        )
        assert Opinion.from_json(opinion.to_json()) == opinion


def test_the_rule_is_said_in_words() -> None:
    assert experts("A", overlap=0.2).in_words() == (
        "each question goes to one expert, and 20% of them to two; a label counts where most answers that name a label "
        "agree, otherwise an arbiter decides"
    )
    assert "every expert answers every question" in experts("A", see=EVERYONE, rule="unanimous").in_words()
