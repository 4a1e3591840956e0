"""What `dpal init` suggests and accepts about units."""

from pathlib import Path

import pytest
from pictures import folder_of

from dpal.cli import unit_answers
from dpal.cli.answered_config import answers_in, config_of, unit_of
from dpal.cli.questions import NO, YES, Answers, WrongAnswer
from dpal.errors import BadData


@pytest.fixture
def folder(tmp_path: Path) -> Answers:
    names = [f"SMITH{number // 2:02d}_{number % 2}.png" for number in range(12)]
    return {"source": "image-folder", "place": str(folder_of(tmp_path / "scans", names))}


@pytest.fixture
def table(tmp_path: Path) -> Answers:
    file = tmp_path / "notes.csv"
    file.write_text("id,text,patient\na,one,P\nb,two,P\nc,three,Q\n", encoding="utf-8")
    return {"source": "table", "place": str(file), "id_column": "id"}


def test_ids_that_look_like_people_are_remarked_on(folder: Answers, tmp_path: Path) -> None:
    assert "(^([^_]+)_)" in unit_answers.what_ids_look_like(folder)
    assert unit_answers.several_default(folder) == YES
    single = {"source": "image-folder", "place": str(folder_of(tmp_path / "other", ["a.png", "b.png", "c.png"]))}
    assert unit_answers.what_ids_look_like(single) == ""
    assert unit_answers.several_default(single) == NO
    assert unit_answers.known_ids({"source": "numpy", "place": "/x.npy"}) == []


def test_a_column_that_sounds_like_it_is_suggested(table: Answers) -> None:
    assert unit_answers.several_default(table) == YES
    assert unit_answers.way_default(table) == "column"
    assert unit_answers.is_default({**table, "unit_from": "column"}) == "patient"
    assert unit_answers.checked_rule("patient", {**table, "unit_from": "column"}) == "patient"
    with pytest.raises(WrongAnswer, match="The columns are id, text, patient"):
        unit_answers.checked_rule("doctor", {**table, "unit_from": "column"})


def test_a_pattern_is_tried_on_all_ids_at_once(folder: Answers) -> None:
    answers = {**folder, "several_records": True, "unit_word": "patient", "unit_from": "pattern"}
    assert unit_answers.way_default(folder) == "pattern"
    suggested = unit_answers.is_default(answers)
    assert unit_answers.checked_rule(suggested, answers) == "^([^_]+)_"
    with pytest.raises(BadData, match="have no unit"):
        unit_answers.checked_rule("^JONES", answers)
    with pytest.raises(WrongAnswer):
        unit_answers.checked_rule("", answers)


def test_a_second_file_is_read_at_once(table: Answers, tmp_path: Path) -> None:
    answers = {**table, "several_records": True, "unit_word": "patient", "unit_from": "file"}
    file = tmp_path / "patients.csv"
    file.write_text("id,unit\na,P\nb,P\n", encoding="utf-8")
    with pytest.raises(BadData, match=r"1 record\(s\).*'c'"):
        unit_answers.checked_rule(str(file), answers)
    file.write_text("id,unit\na,P\nb,P\nc,Q\n", encoding="utf-8")
    assert unit_answers.checked_rule(str(file), answers) == str(file)


@pytest.mark.parametrize("typed", ["", "record", "a\tb"])
def test_wrong_words(typed: str) -> None:
    with pytest.raises(WrongAnswer):
        unit_answers.word(typed, {})


def test_ways_follow_from_the_source(folder: Answers, table: Answers) -> None:
    assert unit_answers.way("column", table) == "column"
    for typed, answers in (("column", folder), ("guess", table)):
        with pytest.raises(WrongAnswer):
            unit_answers.way(typed, answers)


def test_answers_become_the_section_and_come_back(folder: Answers) -> None:
    answers = {
        **folder,
        "several_records": True,
        "unit_word": "patient",
        "unit_from": "pattern",
        "unit_is": "^([^_]+)_",
        "unit_records": 3,
        "one_label": True,
    }
    expected = {"name": "patient", "pattern": "^([^_]+)_", "records": 3, "one_label": True}
    assert unit_of(answers) == expected
    document = config_of(answers)
    assert document["data"]["unit"] == expected
    offered = answers_in(document)
    assert {
        name: offered[name] for name in ("several_records", "unit_word", "unit_from", "unit_is", "unit_records")
    } == {
        "several_records": "yes",
        "unit_word": "patient",
        "unit_from": "pattern",
        "unit_is": "^([^_]+)_",
        "unit_records": "3",
    }
    assert unit_of({**answers, "several_records": False}) is None
