"""One answer: what people and functions give, and its checked value."""

import json

import numpy as np
import pytest

from dpal.errors import InvalidArgument
from dpal.labels.answers import Answer, answer_from_json, is_answer, read_answer

CLASSES = ("no", "yes", "skip?")


@pytest.mark.parametrize(
    ("given", "expected"),
    [("yes", 1), (" yes ", 1), (0, 0), (np.int64(1), 1), ("Skipped", "skip"), ("?", "cannot-tell"), ("skip?", 2)],
)
def test_a_class_by_name_or_number_or_a_word_for_no_label(given: object, expected: Answer) -> None:
    answer = read_answer(given, "r1", CLASSES, False)
    assert answer == expected
    assert is_answer(answer, CLASSES, False)
    assert answer_from_json(json.loads(json.dumps(answer))) == answer


def test_several_labels_are_one_target_per_class() -> None:
    answer = read_answer([1, 0.5, 0], "r1", CLASSES, True)
    assert answer == (1.0, 0.5, 0.0)
    assert is_answer(answer, CLASSES, True) and not is_answer(answer, CLASSES, False)
    assert answer_from_json(json.loads(json.dumps(answer))) == answer


def test_a_class_whose_name_is_a_word_for_no_label_is_the_class() -> None:
    assert read_answer("skip", "r1", ("keep", "skip"), False) == 1


@pytest.mark.parametrize("given", ["maybe", 3, -1, 0.5, "", None, object()])
def test_anything_else_is_refused_with_the_records_name(given: object) -> None:
    with pytest.raises(InvalidArgument, match="the answer for 'r1'"):
        read_answer(given, "r1", CLASSES, False)


@pytest.mark.parametrize("value", [True, 1.5, "banana", None, {}])
def test_json_that_is_not_an_answer_is_refused(value: object) -> None:
    with pytest.raises(ValueError):
        answer_from_json(value)


@pytest.mark.parametrize(
    ("answer", "multi_label"), [(3, False), (-1, False), ("maybe", False), ((0.5, 2.0, 0.0), True)]
)
def test_values_outside_the_classes_are_not_answers(answer: Answer, multi_label: bool) -> None:
    assert not is_answer(answer, CLASSES, multi_label)
