"""Questions as data: asked until the answer is right, explained by `?`, kept after every answer."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dpal.cli.questions import NO, Answers, Question, WrongAnswer, ask, number, one_of, yes_or_no

COLOUR = Question(
    name="colour",
    text="which colour?",
    help="The colour of the door.",
    default="red",
    check=one_of("red", "blue"),
    before="About the door.",
    after=lambda value: "A warm one." if value == "red" else "",
)
SHADE = Question(
    name="shade",
    text=lambda answers: f"which {answers['colour']}?",
    help="Light or dark.",
    default=lambda answers: f"light {answers['colour']}",
    check=lambda typed, answers: typed,
    applies=lambda answers: answers["colour"] == "blue",
)


def asked(
    questions: Sequence[Question], *typed: str, code: int = 0, **settings: Any
) -> tuple[dict[str, Any], str, list[Answers]]:
    """The answers, what was printed, and what was kept after each answer."""
    app = typer.Typer()
    answers: dict[str, Any] = {}
    kept: list[Answers] = []

    @app.command()
    def command() -> None:
        answers.update(ask(questions, keep=lambda so_far: kept.append(dict(so_far)), **settings))

    done = CliRunner().invoke(app, [], input="\n".join(typed) + "\n")
    assert done.exit_code == code, done.output
    return answers, done.output, kept


def test_an_empty_answer_is_the_default() -> None:
    answers, printed, _ = asked([COLOUR], "")
    assert answers == {"colour": "red"}
    assert "About the door." in printed
    assert "[red]" in printed
    assert "A warm one." in printed


def test_a_wrong_answer_is_explained_and_asked_again() -> None:
    answers, printed, kept = asked([COLOUR], "green", "blue")
    assert "'green' is not one of red, blue." in printed
    assert printed.count("which colour?") == 2
    assert "A warm one." not in printed
    assert kept == [answers] == [{"colour": "blue"}]


def test_a_question_mark_shows_the_help() -> None:
    answers, printed, _ = asked([COLOUR], "?", "")
    assert "The colour of the door." in printed
    assert answers == {"colour": "red"}
    assert "The colour" not in asked([COLOUR], "")[1]


def test_questions_follow_from_answers() -> None:
    answers, printed, kept = asked([COLOUR, SHADE], "blue", "")
    assert answers == {"colour": "blue", "shade": "light blue"}
    assert "which blue? [light blue]" in printed
    assert kept == [{"colour": "blue"}, {"colour": "blue", "shade": "light blue"}]
    assert asked([COLOUR, SHADE], "red")[0] == {"colour": "red"}


def test_what_is_given_is_not_asked_and_earlier_answers_are_offered() -> None:
    answers, printed, _ = asked([COLOUR, SHADE], "", given={"colour": "blue"}, offered={"shade": "navy"})
    assert answers == {"colour": "blue", "shade": "navy"}
    assert "which colour?" not in printed


def test_what_was_answered_before_an_interruption_is_kept() -> None:
    must_answer = Question(name="name", text="your name", help="", default="", check=_not_empty)
    _, printed, kept = asked([COLOUR, must_answer], "blue", "", code=1)
    assert "say it" in printed
    assert kept == [{"colour": "blue"}]


def _not_empty(typed: str, answers: Answers) -> str:
    if not typed:
        raise WrongAnswer("Please say it.")
    return typed


@pytest.mark.parametrize(("typed", "value"), [("yes", True), ("y", True), ("Y", True), ("no", False), (NO, False)])
def test_yes_and_no(typed: str, value: bool) -> None:
    assert yes_or_no(typed, {}) is value


@pytest.mark.parametrize("typed", ["", "maybe", "yess", "1"])
def test_neither_yes_nor_no(typed: str) -> None:
    with pytest.raises(WrongAnswer, match="neither yes nor no"):
        yes_or_no(typed, {})


def test_numbers_have_bounds() -> None:
    answers: Mapping[str, Any] = {"largest": 2000}
    check = number(least=2, most=lambda answers: answers["largest"])
    assert check("2", answers) == 2
    assert check("1,500", answers) == 1500
    for typed, why in (("1", "at least 2"), ("2001", "at most 2,000"), ("x", "not a whole number"), ("2.5", "whole")):
        with pytest.raises(WrongAnswer, match=why):
            check(typed, answers)
