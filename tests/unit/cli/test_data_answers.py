"""Answers about data: places must exist and be others than the pool, and classes come from public records only."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import pixels, write_png

from dpal.cli import data_answers
from dpal.cli.questions import Answers, WrongAnswer
from dpal.errors import DpalError

FOLDER: Answers = {"source": "image-folder"}


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    """A pool with folders that tell diagnoses, and a held-out set with others."""
    places = ("pool/rare-disease/1.png", "pool/2.png", "held-out/healthy/3.png", "held-out/ill/4.png")
    for number, place in enumerate(places):
        write_png(tmp_path / place, pixels(number))
    return tmp_path


def test_a_source_or_a_dataset_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPAL_DATA", str(tmp_path))
    assert data_answers.source("table", {}) == "table"
    assert data_answers.source("digits", {}) == "digits"
    with pytest.raises(WrongAnswer, match="'tables' is not one of table, image-folder"):
        data_answers.source("tables", {})
    with pytest.raises(DpalError, match="cifar10"):
        data_answers.source("cifar10", {})
    (tmp_path / "notes.csv").write_text("note\n")
    for path, kind in ((tmp_path, "image-folder"), (tmp_path / "notes.csv", "table")):
        with pytest.raises(WrongAnswer, match=f"its kind is asked, such as {kind}. The path is the next answer"):
            data_answers.source(str(path), {})


def test_a_place_must_exist_and_hold_records(scans: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(scans))
    monkeypatch.chdir(scans)
    assert data_answers.place("~/pool", FOLDER) == str(scans / "pool")
    assert data_answers.place("pool", FOLDER) == str(scans / "pool")
    (scans / "empty").mkdir()
    (scans / "notes.csv").write_text("id,note\n1,fever\n")
    (scans / "nothing.csv").write_text("")
    (scans / "notes.txt").write_text("fever")
    table: Answers = {"source": "table"}
    assert data_answers.place("notes.csv", table) == str(scans / "notes.csv")
    for typed, answers, why in (
        ("~/nowhere", FOLDER, "There is no folder"),
        ("empty", FOLDER, "has no images"),
        ("", FOLDER, "Give the folder of images"),
        ("nowhere.csv", table, "There is no file"),
        ("notes.txt", table, "does not end in .csv or"),
        ("nothing.csv", table, "has no columns"),
        ("./nowhere", {"source": "hugging-face"}, "There is no folder"),
    ):
        with pytest.raises(WrongAnswer, match=why):
            data_answers.place(typed, answers)
    assert data_answers.place("glue", {"source": "hugging-face"}) == "glue"


def test_the_only_place_here_is_suggested(scans: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(scans)
    assert data_answers.only_place(FOLDER) == ""
    monkeypatch.chdir(scans / "pool")
    assert data_answers.only_place(FOLDER) == "rare-disease"
    (scans / "pool/notes.csv").write_text("note\nfever\n")
    assert data_answers.only_place({"source": "table"}) == "notes.csv"


def test_classes_are_suggested_from_public_held_out_records_only(scans: Path) -> None:
    answers: dict[str, Any] = {**FOLDER, "place": str(scans / "pool"), "held_out": str(scans / "held-out")}
    assert data_answers.suggested_classes(answers | {"held_out_is_public": True}) == "healthy, ill"
    assert data_answers.suggested_classes(answers | {"held_out_is_public": False}) == ""
    assert data_answers.suggested_classes(answers | {"held_out": None, "held_out_is_public": True}) == ""


def test_classes_are_suggested_from_a_public_label_column(tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text("note,label\nfever,ill\nnothing,healthy\ncough,ill\nsleep,\n")
    answers: dict[str, Any] = {"source": "table", "held_out": str(tmp_path / "test.csv"), "held_out_is_public": True}
    assert data_answers.held_out_labels_default(answers) == "label"
    assert data_answers.suggested_classes(answers | {"held_out_labels": "label"}) == "healthy, ill"
    with pytest.raises(WrongAnswer, match=r"There is no column 'labels'\. The columns are note, label"):
        data_answers.held_out_labels("labels", answers)


def test_classes_of_an_array_are_numbers(tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.array([0, 2, 1]))
    answers = {"source": "numpy", "held_out": "x", "held_out_is_public": True}
    assert data_answers.suggested_classes(answers | {"held_out_labels": str(tmp_path / "labels.npy")}) == "0, 1, 2"


def test_a_held_out_set_is_not_the_pool(scans: Path) -> None:
    answers: Answers = {**FOLDER, "place": str(scans / "pool")}
    assert data_answers.held_out("none", answers) is None
    assert data_answers.held_out(str(scans / "held-out"), answers) == str(scans / "held-out")
    for place in (scans / "pool", scans, scans / "pool/rare-disease"):
        with pytest.raises(WrongAnswer, match="must be others"):
            data_answers.held_out(str(place), answers)
    with pytest.raises(WrongAnswer, match="folders named after the classes"):
        data_answers.held_out(str(scans / "held-out/ill"), answers)
    with pytest.raises(WrongAnswer, match="must be others"):
        data_answers.held_out("train", {"source": "hugging-face", "split": "train"})


def test_columns_are_checked_at_once(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("id,premise,hypothesis\n1,a,b\n")
    answers: Answers = {"source": "table", "place": str(tmp_path / "pairs.csv"), "kind": "texts"}
    assert data_answers.kind_of_records(answers) == "texts"
    assert data_answers.id_column_default(answers) == "id"
    assert data_answers.id_column("none", answers) is None
    assert data_answers.content_columns("premise", answers) == "premise"
    assert data_answers.content_columns("premise, hypothesis", answers) == ["premise", "hypothesis"]
    with pytest.raises(WrongAnswer, match="There is no column 'conclusion'"):
        data_answers.content_columns("premise, conclusion", answers)
    with pytest.raises(WrongAnswer, match="There is no column 'name'"):
        data_answers.id_column("name", answers)


def test_columns_that_sound_like_images(tmp_path: Path) -> None:
    (tmp_path / "cells.jsonl").write_text('{"case": "1", "Image": "a.png"}\n')
    answers: Answers = {"source": "table", "place": str(tmp_path / "cells.jsonl"), "kind": "images"}
    assert data_answers.kind_of_records(answers) == "images"
    assert data_answers.content_column_default(answers) == "Image"
    assert data_answers.id_column_default(answers) == "none"


def test_classes_are_at_least_two_different_names() -> None:
    assert data_answers.classes("healthy, ill", {}) == ["healthy", "ill"]
    for typed in ("", "healthy", "ill, ill", "ill,,healthy"):
        with pytest.raises(WrongAnswer, match="at least two different names"):
            data_answers.classes(typed, {})


def test_epsilon_is_a_positive_number() -> None:
    assert data_answers.epsilon("0.5", {}) == 0.5
    for typed in ("0", "-1", "nan", "inf", "eight"):
        with pytest.raises(WrongAnswer):
            data_answers.epsilon(typed, {})


def test_the_pool_of_the_answers(scans: Path) -> None:
    answers = {**FOLDER, "place": str(scans / "pool"), "classes": ["a", "b"], "size": 8, "channels": 1}
    assert len(data_answers.pool_of(answers)) == 2
