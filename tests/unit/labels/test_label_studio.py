"""Label Studio's forms: what an annotation says, and which of several counts."""

import pytest

from dpal.labels.label_studio import answer_of, labelling_interface, newest, task_of

CLASSES = ("no", "yes")


def annotation(*names: str, **more: object) -> dict[str, object]:
    other = {"from_name": "something else", "value": {"choices": ["yes"]}}
    return {"result": [other, {"from_name": "label", "value": {"choices": list(names)}}], **more}


def test_answers() -> None:
    assert answer_of(annotation("yes"), CLASSES, multi_label=False) == "yes"
    assert answer_of(annotation("cannot tell"), CLASSES, multi_label=False) == "cannot-tell"
    assert answer_of(annotation("yes", was_cancelled=True), CLASSES, multi_label=False) == "skip"
    assert answer_of({"result": []}, CLASSES, multi_label=True) == [0.0, 0.0]
    assert answer_of(annotation("no", "yes"), CLASSES, multi_label=True) == [1.0, 1.0]
    # A class of that name is a class.
    assert answer_of(annotation("cannot tell"), ("cannot tell", "x"), multi_label=False) == "cannot tell"


@pytest.mark.parametrize("names", [(), ("no", "yes"), ("maybe",)])
def test_what_is_no_answer(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="class"):
        answer_of(annotation(*names), CLASSES, multi_label=False)


def test_the_newest_annotation_counts() -> None:
    old, new = {"id": 9, "updated_at": "2026-01-01"}, {"id": 1, "updated_at": "2026-01-02"}
    assert newest({"annotations": [new, old]}) == newest({"annotations": [old, new]}) == new
    assert newest({"annotations": []}) is None and newest({}) is None


def test_names_in_markup_are_escaped_and_tasks_carry_the_question() -> None:
    interface = labelling_interface(['a"<b>&'], multi_label=False, pictures=2, texts=0)
    assert "&lt;b&gt;&amp;" in interface and interface.count("<Image") == 2 and 'required="true"' in interface
    assert task_of("q", files=["x"], texts=[("a", "b")]) == {
        "data": {"dpal_name": "q", "image1": "x", "text1": "a", "text2": "b"}
    }
    assert "$dpal_name" in labelling_interface(CLASSES, multi_label=False, pictures=0, texts=0)
