import csv
from pathlib import Path

import numpy as np
import pytest
from pictures import pixels, write_png
from PIL import Image

from dpal.data import Pool, from_arrays, from_image_folder
from dpal.data.records import TextRecords
from dpal.errors import InvalidArgument, LabelsRefused, MissingData
from dpal.labels import label_files
from dpal.labels.public_names import OwnNames

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 1, 8, 8), dtype=np.uint8)
IDS = ["b/2", "a,1", "c;3", 'd"4', "0005", "e 6"]


def exported(pool: Pool, ids: list[str], folder: Path) -> Path:
    """Under their own ids; opaque names have tests of their own."""
    questions = [label_files.Question(name=record_id, ids=(record_id,)) for record_id in ids]
    return label_files.write_label_files(pool, questions, folder)


def answers_in(file: Path, pool: Pool, asked: set[str]) -> dict[str, object]:
    return label_files.read_label_file(file, pool, asked, names=OwnNames(frozenset(pool.ids.tolist())))


def image_pool() -> Pool:
    return from_arrays(IMAGES, classes=["cat", "dog"], labels=[0, 1, 0, 1, None, 1], ids=IDS)


def text_pool() -> Pool:
    texts = TextRecords([("fever, cough",), ('she said "no"',), ("line\nbreak",)])
    return Pool(name="notes", ids=np.array(["x", "y", "z"]), records=texts, classes=("no", "yes"))


def rows(file: Path) -> list[list[str]]:
    with file.open(newline="", encoding="utf-8-sig") as lines:
        return list(csv.reader(lines))


def test_an_export_has_a_line_and_a_picture_for_each_record(tmp_path: Path) -> None:
    table = exported(image_pool(), ["b/2", "a,1", "0005"], tmp_path / "week 1")
    assert rows(table)[0] == ["id", "file", "label"]
    # In the order of the ids: the order of selection or of scores would tell something.
    assert [row[0] for row in rows(table)[1:]] == ["0005", "a,1", "b/2"]
    for row in rows(table)[1:]:
        shown = np.asarray(Image.open(table.parent / row[1]))
        assert np.array_equal(shown, IMAGES[IDS.index(row[0]), 0])


def test_people_see_the_whole_image_not_the_models_crop(tmp_path: Path) -> None:
    write_png(tmp_path / "scans" / "a.png", pixels(1, side=40))
    pool = from_image_folder(tmp_path / "scans", classes=2, size=8, channels=3)
    table = exported(pool, ["a.png"], tmp_path / "out")
    assert np.asarray(Image.open(table.parent / "images/000001.png")).shape == (40, 40, 3)


def test_texts_come_back_with_their_ids(tmp_path: Path) -> None:
    table = exported(text_pool(), ["z", "x", "y"], tmp_path / "out")
    assert rows(table)[1:] == [["x", "fever, cough", ""], ["y", 'she said "no"', ""], ["z", "line\nbreak", ""]]


def test_an_export_never_overwrites(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "labels.csv").write_text("weeks of work")
    with pytest.raises(InvalidArgument, match="new or empty"):
        exported(text_pool(), ["x"], tmp_path / "out")
    assert (tmp_path / "out" / "labels.csv").read_text() == "weeks of work"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_a_filled_in_export_is_read_whatever_spreadsheet_saved_it(tmp_path: Path, separator: str, start: str) -> None:
    table = exported(image_pool(), IDS, tmp_path / "out")
    answers = {"b/2": "dog", "a,1": " cat ", "c;3": "skip", 'd"4': "Cannot tell", "0005": "DOG", "e 6": ""}
    lines = rows(table)
    filled = tmp_path / "filled.csv"
    with filled.open("w", newline="", encoding="utf-8") as target:
        target.write(start)
        writer = csv.writer(target, delimiter=separator, lineterminator="\r\n")
        writer.writerow(lines[0])
        writer.writerows([[name, file, answers[name]] for name, file, _ in lines[1:]])
    found = answers_in(filled, image_pool(), set(IDS))
    assert found == {"b/2": 1, "a,1": 0, "c;3": "skip", 'd"4': "cannot-tell", "0005": 1}


def test_every_problem_is_listed_and_nothing_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text('id,label\nb/2,dog\nnobody,cat\n0005,1\ne 6,cat\n"a,1",cat\n"a,1",dog\nb/2,dog\n')
    with pytest.raises(LabelsRefused) as caught:
        answers_in(file, image_pool(), set(IDS) - {"e 6"})
    message = str(caught.value)
    assert "4 problem(s)" in message
    for part in ("line 3: the id 'nobody' is not in the pool", "line 4", "'1'", "cat, dog, or skip"):
        assert part in message
    assert "line 5: the id 'e 6' was not asked for" in message
    assert "line 7: the id 'a,1' appears twice with different answers" in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no column id, label"),
        (b"name,label\nx,yes\n", "no column id"),
        (b"id,answer\nx,yes\n", "no column label"),
        (b"id,text,label\nx\n", "Line 2 of .* has 1 cells"),
        (b"id,label\nx,yes,surplus\n", "Line 2 of .* has 3 cells"),
        (b"id,label,Label\nx,yes,no\n", "label twice"),
        (b'id,label\n"x,yes\n', "cannot be read"),
        (b"id,label\nx,\xff\xfe\n", "UTF-8"),
    ],
)
def test_files_that_are_not_label_tables_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "labels.csv").write_bytes(content)
    with pytest.raises(LabelsRefused, match=message):
        answers_in(tmp_path / "labels.csv", text_pool(), {"x"})
    with pytest.raises(MissingData):
        answers_in(tmp_path / "none.csv", text_pool(), {"x"})


def test_several_labels_have_a_column_each(tmp_path: Path) -> None:
    pool = from_arrays(IMAGES, classes=["edema", "fracture"], ids=IDS, multi_label=True)
    table = exported(pool, IDS[:4], tmp_path / "out")
    assert rows(table)[0] == ["id", "file", "edema", "fracture"]
    file = tmp_path / "labels.csv"
    file.write_text('id,edema,fracture\nb/2,1,0\n"a,1",0.8,0\nc;3,skip,\n"d""4",,\n')
    assert answers_in(file, pool, set(IDS)) == {"b/2": (1.0, 0.0), "a,1": pytest.approx((0.8, 0.0)), "c;3": "skip"}
    for wrong in ("b/2,1,", "b/2,2,0", "b/2,yes,0", "b/2,skip,0", "b/2,skip,?"):
        file.write_text(f"id,edema,fracture\n{wrong}\n")
        with pytest.raises(LabelsRefused, match="line 2"):
            answers_in(file, pool, set(IDS))


def test_headings_in_capitals_and_excels_first_line(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("sep=;\nID;Label\nx;yes\n")
    assert answers_in(tmp_path / "labels.csv", text_pool(), {"x"}) == {"x": 1}


def test_ids_with_spaces_around_come_back(tmp_path: Path) -> None:
    pool = from_arrays(IMAGES[:2], classes=["cat", "dog"], ids=[" a ", "b"])
    (tmp_path / "labels.csv").write_text("id,label\n a ,cat\n b,dog\n")
    assert answers_in(tmp_path / "labels.csv", pool, {" a ", "b"}) == {" a ": 0, "b": 1}


def test_texts_are_no_formulas_for_a_spreadsheet(tmp_path: Path) -> None:
    texts = TextRecords([('=HYPERLINK("http://evil")',), ("-1 is a number",), ("fine",)])
    pool = Pool(name="notes", ids=np.array(["x", "y", "z"]), records=texts, classes=("no", "yes"))
    table = exported(pool, ["x", "y", "z"], tmp_path / "out")
    assert [row[1][0] for row in rows(table)[1:]] == ["'", "'", "f"]


def test_a_class_called_like_a_column_of_ours(tmp_path: Path) -> None:
    pool = from_arrays(IMAGES, classes=["file", "fracture"], ids=IDS, multi_label=True)
    table = exported(pool, IDS[:1], tmp_path / "out")
    assert rows(table)[0] == ["id", "file ", "file", "fracture"]
    with pytest.raises(LabelsRefused, match="Rename the class"):
        exported(from_arrays(IMAGES, classes=["id", "x"], ids=IDS, multi_label=True), IDS[:1], tmp_path / "two")


def test_a_word_for_no_label_is_not_a_class_of_that_name(tmp_path: Path) -> None:
    pool = from_arrays(IMAGES[:3], classes=["lesion", "cannot-tell"], ids=["a", "b", "c"])
    (tmp_path / "labels.csv").write_text("id,label\na,cannot tell\nb,cannot-tell\nc,?\n")
    # Written exactly as the class, it is the class; every other spelling is the answer without a label.
    assert answers_in(tmp_path / "labels.csv", pool, {"a", "b", "c"}) == {
        "a": "cannot-tell",
        "b": 1,
        "c": "cannot-tell",
    }


def test_umlauts_may_be_written_in_two_ways(tmp_path: Path) -> None:
    """Some systems write ü as a u and two dots: the same class for people, other bytes."""
    pool = from_arrays(np.zeros((2, 3)), ids=["a", "b"], classes=["müde", "wach"])
    (tmp_path / "labels.csv").write_text("id,label\na,mu\u0308de\nb,MÜDE\n", encoding="utf-8")
    assert answers_in(tmp_path / "labels.csv", pool, {"a", "b"}) == {"a": 0, "b": 0}
    several = from_arrays(np.zeros((1, 3)), ids=["a"], classes=["mu\u0308de", "wach"], multi_label=True)
    (tmp_path / "several.csv").write_text("id,müde,wach\na,1,0\n", encoding="utf-8")
    assert answers_in(tmp_path / "several.csv", several, {"a"}) == {"a": (1.0, 0.0)}
