"""Questions on a terminal, as data: each is asked until its answer is right, and `?` explains it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from dpal.errors import DpalError

# What was answered so far, by the names of the questions.
Answers = Mapping[str, Any]
HELP = "?"
NONE = "none"
YES, NO = "yes", "no"


class WrongAnswer(DpalError):
    """An answer that cannot be right. The message says why and what to answer instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question. Where a field may be a function, it is called with the answers so far."""

    name: str
    text: str | Callable[[Answers], str]
    # A sentence for someone who answers `?`.
    help: str
    # What an empty answer means; "" if an answer must be given.
    default: str | Callable[[Answers], str]
    # Takes the text that was typed and returns its value, or raises a DpalError that says what is wrong.
    check: Callable[[str, Answers], Any]
    # Whether the question makes sense after these answers.
    applies: Callable[[Answers], bool] = lambda answers: True
    # Said before the question, and after it with its answer. "" says nothing.
    before: str | Callable[[Answers], str] = ""
    after: Callable[[Any], str] = lambda value: ""


def ask(
    questions: Sequence[Question],
    *,
    given: Answers | None = None,
    offered: Mapping[str, str] | None = None,
    keep: Callable[[Answers], None] = lambda answers: None,
) -> dict[str, Any]:
    """The answers to all questions that apply. What is given is not asked.

    `offered` are earlier answers, which replace defaults. `keep` is called after every answer.
    """
    answers: dict[str, Any] = dict(given or {})
    for question in questions:
        if question.name in answers or not question.applies(answers):
            continue
        answers[question.name] = _answer(question, answers, (offered or {}).get(question.name))
        keep(answers)
    return answers


def _answer(question: Question, answers: Answers, offered: str | None) -> Any:
    if words := _said(question.before, answers):
        typer.echo(words)
    default = _said(question.default, answers) if offered is None else offered
    while True:
        typed = str(typer.prompt(_said(question.text, answers), default=default, show_default=bool(default))).strip()
        if typed == HELP:
            typer.echo(f"  {question.help}")
            continue
        try:
            value = question.check(typed, answers)
        except DpalError as error:
            typer.echo(f"  {error}")
            continue
        if words := question.after(value):
            typer.echo(f"  {words}")
        return value


def _said(words: str | Callable[[Answers], str], answers: Answers) -> str:
    return words if isinstance(words, str) else words(answers)


def one_of(*choices: str) -> Callable[[str, Answers], str]:
    """A check for one of these words."""

    def check(typed: str, answers: Answers) -> str:
        if typed not in choices:
            raise WrongAnswer(f"{typed!r} is not one of {', '.join(choices)}.")
        return typed

    return check


def yes_or_no(typed: str, answers: Answers) -> bool:
    """A check for yes and no, also by their first letters."""
    word = typed.casefold()
    if word not in (YES, NO, YES[0], NO[0]):
        raise WrongAnswer(f"{typed!r} is neither yes nor no.")
    return word[0] == YES[0]


def number(*, least: int, most: Callable[[Answers], int]) -> Callable[[str, Answers], int]:
    """A check for a whole number within bounds."""

    def check(typed: str, answers: Answers) -> int:
        try:
            value = int(typed.replace(",", ""))
        except ValueError as error:
            raise WrongAnswer(f"{typed!r} is not a whole number.") from error
        if value < least:
            raise WrongAnswer(f"{typed} is too small: it must be at least {least:,}.")
        if value > most(answers):
            raise WrongAnswer(f"{typed} is too large: it must be at most {most(answers):,}.")
        return value

    return check
