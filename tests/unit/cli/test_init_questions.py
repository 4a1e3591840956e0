"""The questions of `dpal init`: every one has help and a default, and wrong answers about the plan are refused."""

from typing import Any

import pytest

from dpal.cli.init_questions import QUESTIONS
from dpal.cli.questions import Answers, Question, WrongAnswer
from dpal.errors import DpalError

BY_NAME = {question.name: question for question in QUESTIONS}
# Where the records are and what the classes are called only the person knows.
WITHOUT_A_DEFAULT = {"place", "held_out_labels", "classes", "unit_is"}
FOLDER = {"source": "image-folder", "place": "/scans"}
DIGITS = {"source": "digits", "model": "resnet9", "selections": "inside", "epsilon": 8.0}


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_every_question_has_help_and_a_default(question: Question) -> None:
    assert len(question.help) > 20
    assert question.help.endswith(".")
    assert callable(question.default) or question.default
    if question.name in WITHOUT_A_DEFAULT:
        assert callable(question.default)


def test_every_default_is_a_right_answer() -> None:
    """For a published dataset, from the first question to the last."""
    answers: dict[str, Any] = {"source": "digits"}
    for question in QUESTIONS[1:]:
        if question.applies(answers):
            default = question.default(answers) if callable(question.default) else question.default
            answers[question.name] = question.check(default, answers)
    assert answers == {
        "source": "digits",
        "model": "efficientnet-lite0",
        "epsilon": 8.0,
        "selections": "inside",
        "labels": 500,
        "phases": 2,
        "oracle": "files",
    }


def applies(name: str, answers: Answers) -> bool:
    return BY_NAME[name].applies(answers)


def test_what_is_asked_follows_from_the_source() -> None:
    own = {"place", "held_out", "classes", "several_records", "size", "channels", "ids_are_free"}
    assert {name for name in own if applies(name, FOLDER | {"model": "resnet9"})} == own
    assert not any(applies(name, DIGITS) for name in own)
    table = {"source": "table", "place": "/t.csv", "kind": "texts", "id_column": None}
    assert not applies("ids_are_free", table)
    assert applies("ids_are_free", table | {"id_column": "id"})
    assert applies("text_model", table | {"model": "text-classifier"})
    assert not applies("text_model", table | {"model": "minilm"})
    assert applies("held_out_labels", table | {"held_out": "/x.csv", "held_out_is_public": True})
    assert not applies("held_out_labels", table | {"held_out": "/x.csv", "held_out_is_public": False})
    assert not applies("held_out_is_public", table | {"held_out": None})


UNITS = ("unit_word", "unit_from", "unit_is", "unit_records", "one_label")


def test_who_the_records_belong_to_is_asked_where_several_belong_to_one_person() -> None:
    answers = FOLDER | {"several_records": True, "unit_word": "patient", "unit_from": "pattern"}
    assert all(applies(name, answers) for name in UNITS)
    assert not any(applies(name, FOLDER | {"several_records": False}) for name in UNITS)
    assert "patient" in BY_NAME["unit_from"].text(answers)  # type: ignore[operator]


def test_a_held_out_set_that_is_not_public_is_explained() -> None:
    question = BY_NAME["held_out_is_public"]
    assert "left out" in question.after(False)
    assert question.after(True) == ""


def test_a_large_epsilon_is_remarked_on() -> None:
    assert "almost nothing" in BY_NAME["epsilon"].after(1000.0)
    assert BY_NAME["epsilon"].after(8.0) == ""


@pytest.mark.parametrize(
    ("name", "typed", "answers"),
    [
        ("size", "7", {"model": "efficientnet-lite0"}),
        ("size", "0", {"model": "resnet9"}),
        ("channels", "green", {}),
        ("labels", "1438", DIGITS),
        ("labels", "1", DIGITS),
        ("phases", "0", {}),
        ("selections", "outside", {}),
        ("oracle", "simulated", FOLDER),
        ("oracle", "experts", FOLDER),
    ],
)
def test_wrong_answers(name: str, typed: str, answers: Answers) -> None:
    with pytest.raises((WrongAnswer, DpalError)):
        BY_NAME[name].check(typed, answers)


def test_right_answers() -> None:
    assert BY_NAME["size"].check("28", {"model": "efficientnet-lite0"}) == 28
    assert BY_NAME["channels"].check("grey", {}) == 1
    assert BY_NAME["labels"].check("1,437", DIGITS) == 1437
    assert BY_NAME["oracle"].check("simulated", DIGITS) == "simulated"
    assert BY_NAME["size"].default({"model": "efficientnet-lite0"}) == "224"  # type: ignore[operator]
    assert BY_NAME["size"].default({"model": "resnet9"}) == "64"  # type: ignore[operator]
