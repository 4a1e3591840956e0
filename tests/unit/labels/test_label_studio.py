"""Label Studio's forms: what an annotation says, and which of several counts."""

import json
from pathlib import Path

import numpy as np
import pytest

from dpal.data.arrays import from_arrays
from dpal.errors import LabelsRefused
from dpal.labels.label_files import read_label_file
from dpal.labels.label_studio import NAME, answer_of, labelling_interface, newest, no_label_of, task_of
from dpal.labels.public_names import OwnNames

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


def test_skipping_is_not_a_class_called_skip() -> None:
    classes = ("go", "skip")
    assert no_label_of(annotation("go", was_cancelled=True), classes) == "skip"
    assert no_label_of(annotation("skip"), classes) is None
    assert answer_of(annotation("skip"), classes, multi_label=False) == "skip"


def test_a_skipped_task_in_a_file_is_not_labelled_with_a_class_of_that_name(tmp_path: Path) -> None:
    pool = from_arrays(np.zeros((1, 2), dtype=np.float32), ids=["r0"], classes=["go", "skip"])
    task = {"id": 4, "data": {NAME: "r0"}, "annotations": [{"id": 1} | annotation("go", was_cancelled=True)]}
    (tmp_path / "a.json").write_text(json.dumps([task]), encoding="utf-8")
    with pytest.raises(LabelsRefused, match=r"task 4: .*a class is called so"):
        read_label_file(tmp_path / "a.json", pool, {"r0"}, names=OwnNames(frozenset(["r0"])))


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
