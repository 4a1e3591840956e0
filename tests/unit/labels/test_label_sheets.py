"""What is exported in each form comes back with the same answers: filled in as that form's tools do, and read."""

import csv
import io
import json
import shutil
import subprocess
import unicodedata
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpal.data import Pool, from_arrays
from dpal.data.records import TextRecords
from dpal.errors import InvalidArgument, LabelsRefused
from dpal.labels.answers import CANNOT_TELL, NO_LABEL, SKIPPED
from dpal.labels.label_files import Question, read_label_file, write_label_files
from dpal.labels.label_sheets import WRITERS, harmless
from dpal.labels.public_names import OwnNames

IDS = [f"r{number}" for number in range(6)]
CLASSES = ("Ödem", "0", "yes & no")
# By id; r5 stays open.
ANSWERS = {"r0": "Ödem", "r1": "0", "r2": "yes & no", "r3": SKIPPED, "r4": CANNOT_TELL}
SEVERAL = {"r0": [1.0, 0.0, 1.0], "r1": [0.0, 0.0, 0.0], "r2": [0.0, 1.0, 0.0], "r3": SKIPPED, "r4": CANNOT_TELL}


def pool(multi_label: bool, kind: str = "images") -> Pool:
    if kind == "texts":
        texts = TextRecords([(f"=1+1 {name}", 'fever; "cough",\n<b>') for name in IDS])
        return Pool(name="n", ids=np.asarray(IDS), records=texts, classes=CLASSES, multi_label=multi_label)
    images = np.random.default_rng(0).integers(0, 256, (len(IDS), 1, 8, 8), dtype=np.uint8)
    return from_arrays(images, classes=list(CLASSES), ids=IDS, multi_label=multi_label)


def exported(folder: Path, of: Pool, kind: str) -> Path:
    questions = [Question(name=name, ids=(name,)) for name in of.ids.tolist()]
    return write_label_files(of, questions, folder, kind=kind, guidelines="Look at the edge.")


def answers_in(file: Path, of: Pool) -> dict[str, object]:
    return dict(read_label_file(file, of, set(of.ids.tolist()), names=OwnNames(frozenset(of.ids.tolist()))))


def cells(answer: object, columns: int) -> list[str]:
    if isinstance(answer, list):
        return [f"{target:g}" for target in answer]
    return [str(answer), *("" for _ in range(columns - 1))]


def chosen(targets: list[float], classes: Sequence[str]) -> list[str]:
    return [name for name, on in zip(classes, targets, strict=True) if on]


def fill_csv(file: Path, answers: dict[str, Any], classes: Sequence[str] = CLASSES) -> None:
    with file.open(newline="", encoding="utf-8-sig") as lines:
        header, *rows = list(csv.reader(lines))
    count = len(header) - header.index("label" if "label" in header else classes[0])
    with file.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines)
        writer.writerow(header)
        for row in rows:
            writer.writerow([*row[:-count], *(cells(answers[row[0]], count) if row[0] in answers else [""] * count)])


def fill_excel(file: Path, answers: dict[str, Any], classes: Sequence[str] = CLASSES) -> None:
    """As spreadsheets save it: numbers as numbers."""
    import openpyxl

    book = openpyxl.load_workbook(file)
    table = book["labels"]
    header = [cell.value for cell in table[1]]
    first = header.index("label" if "label" in header else classes[0])
    for row in table.iter_rows(min_row=2):
        if row[0].value in answers:
            for cell, text in zip(row[first:], cells(answers[row[0].value], len(header) - first), strict=True):
                cell.value = float(text) if text in ("0", "1") else text or None
    book.save(file)


def fill_json_lines(file: Path, answers: dict[str, Any], classes: Sequence[str] = CLASSES) -> None:
    # Lines end with a line feed; a text may have other separators in it.
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
    for line in lines:
        given = answers.get(line["id"])
        line["label"] = (
            [name for name, on in zip(classes, given, strict=True) if on] if isinstance(given, list) else given
        )
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")


def fill_coco(file: Path, answers: dict[str, Any], classes: Sequence[str] = CLASSES) -> None:
    document = json.loads(file.read_text(encoding="utf-8"))
    numbers = {category["name"]: category["id"] for category in document["categories"]}
    for image in document["images"]:
        given = answers.get(image["question"], [])
        names = (
            [name for name, on in zip(classes, given, strict=True) if on]
            if isinstance(given, list) and given
            else given
        )
        for name in [names] if isinstance(names, str) else names:
            number = numbers.setdefault(name, len(numbers) + 1)
            document["annotations"].append({"id": 1, "image_id": image["id"], "category_id": number})
    document["categories"] = [{"id": number, "name": name} for name, number in numbers.items()]
    file.write_text(json.dumps(document), encoding="utf-8")


def fill_label_studio(file: Path, answers: dict[str, Any], classes: Sequence[str] = CLASSES) -> None:
    """As its export has it; an earlier answer of each task was corrected."""
    tasks = json.loads(file.read_text(encoding="utf-8"))
    for number, task in enumerate(tasks, start=1):
        task["id"], task["annotations"] = number, []
        given = answers.get(task["data"]["dpal_name"])
        if given is None:
            continue
        names = chosen(given, classes) if isinstance(given, list) else [given]
        names = ["cannot tell"] if given == CANNOT_TELL else [] if given == SKIPPED else names
        result = [{"from_name": "label", "to_name": "image1", "type": "choices", "value": {"choices": names}}]
        earlier = [{"from_name": "label", "value": {"choices": [classes[0]]}}]
        task["annotations"] = [
            {"id": 9, "was_cancelled": given == SKIPPED, "result": result, "updated_at": "2026-02-02T00:00:00Z"},
            {"id": 8, "was_cancelled": False, "result": earlier, "updated_at": "2026-01-01T00:00:00Z"},
        ]
    file.write_text(json.dumps(tasks), encoding="utf-8")


FILL = {
    "csv": fill_csv,
    "xlsx": fill_excel,
    "jsonl": fill_json_lines,
    "coco": fill_coco,
    "label-studio": fill_label_studio,
}


def expected(answers: dict[str, Any], kind: str) -> dict[str, object]:
    known: dict[str, object] = {}
    for name, answer in answers.items():
        if kind == "coco" and answer == [0.0, 0.0, 0.0]:
            # There, none of the classes and no answer yet look the same.
            continue
        known[name] = (
            tuple(answer) if isinstance(answer, list) else CLASSES.index(answer) if answer in CLASSES else answer
        )
    return known


@pytest.mark.parametrize("kind", sorted(WRITERS))
@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("records", ["images", "texts"])
def test_answers_come_back(tmp_path: Path, kind: str, multi_label: bool, records: str) -> None:
    if kind == "coco" and records == "texts":
        pytest.skip("COCO is for images")
    of = pool(multi_label, records)
    file = exported(tmp_path / "out", of, kind)
    assert answers_in(file, of) == {}
    answers = SEVERAL if multi_label else ANSWERS
    FILL[kind](file, answers)
    assert answers_in(file, of) == expected(answers, kind)


def test_every_folder_says_what_to_do(tmp_path: Path) -> None:
    exported(tmp_path / "out", pool(False), "xlsx")
    text = (tmp_path / "out" / "README.txt").read_text(encoding="utf-8")
    for words in ("Look at the edge.", "labels.xlsx", *CLASSES, CANNOT_TELL, SKIPPED):
        assert words in text
    assert len(list((tmp_path / "out" / "images").iterdir())) == len(IDS)


def test_a_workbook_runs_nothing_and_offers_the_classes(tmp_path: Path) -> None:
    import openpyxl

    book = openpyxl.load_workbook(exported(tmp_path / "out", pool(False, "texts"), "xlsx"))
    table = book["labels"]
    texts = [cell for row in table.iter_rows(min_row=2) for cell in row if str(cell.value).startswith("=1+1")]
    assert len(texts) == len(IDS) and all(cell.data_type == "s" for cell in texts)
    (rule,) = table.data_validations.dataValidation
    assert rule.formula1 == "answers!$A$1:$A$5"
    assert [cell.value for cell in book["answers"]["A"]] == [*CLASSES, SKIPPED, CANNOT_TELL]


def test_a_cell_says_what_it_cannot_hold(tmp_path: Path) -> None:
    import openpyxl

    of = pool(False, "texts")
    rows = [("a\x08b\uffffc", "x" * 40_000), *of.records.texts[1:]]
    of = replace(of, records=TextRecords(rows))
    book = openpyxl.load_workbook(exported(tmp_path / "out", of, "xlsx"))
    _, first, second, _ = (cell.value for cell in book["labels"][2])
    assert first == "a\ufffdb\ufffdc" and len(second) == 32_767 and second.endswith("does not fit into a cell)")


def test_label_studio_gets_its_interface(tmp_path: Path) -> None:
    from xml.etree import ElementTree

    exported(tmp_path / "out", pool(True), "label-studio")
    view = ElementTree.fromstring((tmp_path / "out" / "interface.xml").read_text(encoding="utf-8"))  # noqa: S314
    assert [choice.get("value") for choice in view.iter("Choice")] == [*CLASSES, "cannot tell"]
    assert next(view.iter("Choices")).get("choice") == "multiple"
    assert next(view.iter("Image")).get("value") == "$image1"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xlsx", b"not a workbook", "cannot be read as a workbook"),
        ("a.jsonl", b'{"id": ', "cannot be read as JSON"),
        ("a.jsonl", b'{"label": "0"}', "Line 1 .* is not an object with an id"),
        ("a.jsonl", b"[1]", "is not an object"),
        ("a.json", b"{}", "neither COCO nor an export of Label Studio"),
        ("a.json", b'[{"data": {}, "annotations": [{"result": []}]}]', "not complete: KeyError at 'dpal_name'"),
        ("a.json", b'{"images": [], "categories": [], "annotations": [{"image_id": 3}]}', "not complete"),
        ("a.json", b"[" * 100_000, "cannot be read as JSON"),
        ("a.json", b'[{"data": {"dpal_name": "r0"}, "annotations": [{"id": "x"}]}]', "not complete"),
        ("a.json", b'[{"id": 1, "dpal_name": "r0", "label": "0"}]', "not as JSON-MIN"),
        ("a.jsonl", b"\xff", "as JSON in UTF-8"),
        ("a.jsonl", b'{"id": ' + b"1" * 5_000 + b"}", "cannot be read as JSON"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LabelsRefused, match=rf"(?s){message}.*No label was taken"):
        answers_in(tmp_path / name, pool(False))


@pytest.mark.parametrize(
    ("kind", "line", "message"),
    [
        ("jsonl", {"id": "r0", "label": "edema"}, "line 1: .*'edema'"),
        ("jsonl", {"id": "nobody", "label": "0"}, "line 1: .*'nobody' is not in the pool"),
        ("jsonl", {"id": "r0", "label": {"a": 1}}, "line 1"),
        (
            "json",
            [{"id": 4, "data": {"dpal_name": "r0"}, "annotations": [{"id": 1, "result": []}]}],
            "task 4: .*0 classes",
        ),
        (
            "json",
            {
                "images": [{"id": 1, "file_name": "r0"}],
                "categories": [{"id": 1, "name": "0"}, {"id": 2, "name": "Ödem"}],
                "annotations": [{"image_id": 1, "category_id": 1}, {"image_id": 1, "category_id": 2}],
            },
            "the image of r0: .*'0, Ödem'",
        ),
    ],
)
def test_problems_are_listed_with_their_place(tmp_path: Path, kind: str, line: Any, message: str) -> None:
    (tmp_path / f"a.{kind}").write_text(json.dumps(line), encoding="utf-8")
    with pytest.raises(LabelsRefused, match=rf"1 problem.*None of its labels were taken:\s+{message}"):
        answers_in(tmp_path / f"a.{kind}", pool(False))


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="csv, xlsx, jsonl, coco, label-studio"):
        exported(tmp_path / "out", pool(False), "docx")


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["csv", "xlsx", "jsonl", "json", "tsv", "txt"]))
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes, suffix: str) -> None:
    file = tmp_path_factory.mktemp("any") / f"a.{suffix}"
    file.write_bytes(content)
    try:
        found = answers_in(file, pool(False))
    except LabelsRefused:
        return
    assert set(found) <= set(IDS)


def test_a_workbook_that_is_damaged_anywhere_is_read_or_refused(tmp_path: Path) -> None:
    """Random bytes are no zip file: the sheets within one are only reached by damage to a real workbook."""
    file = exported(tmp_path / "out", pool(False), "xlsx")
    fill_excel(file, dict.fromkeys(IDS, "0"))
    whole, generator, refused = file.read_bytes(), np.random.default_rng(3), 0
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(generator.integers(1, 5)):
            damaged[generator.integers(len(damaged))] ^= 1 << int(generator.integers(8))
        file.write_bytes(damaged)
        try:
            assert set(answers_in(file, pool(False))) <= set(IDS)
        except LabelsRefused:
            refused += 1
    # Sheets with an end that is missing, without a checksum that would show it.
    with zipfile.ZipFile(io.BytesIO(whole)) as book, zipfile.ZipFile(file, "w") as shorter:
        for name in book.namelist():
            content = book.read(name)
            shorter.writestr(name, content[: len(content) // 2] if "sheet1" in name else content)
    with pytest.raises(LabelsRefused, match=r"cannot be read as a workbook.*No label was taken"):
        answers_in(file, pool(False))
    assert refused > 20


TEXT = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=12).filter(
    lambda text: text == text.strip() and text.casefold() not in (SKIPPED, CANNOT_TELL, "?", "skipped", "id")
)


ANY = st.text(st.characters(blacklist_categories=("Cs",)), max_size=20)


@settings(max_examples=120, deadline=None)
@given(
    classes=st.lists(
        TEXT, min_size=2, max_size=4, unique_by=lambda text: unicodedata.normalize("NFC", text).casefold()
    ),
    kind=st.sampled_from(sorted(WRITERS)),
    several=st.booleans(),
    are_texts=st.booleans(),
    data=st.data(),
)
def test_any_classes_and_answers_come_back(
    tmp_path_factory: pytest.TempPathFactory,
    classes: list[str],
    kind: str,
    several: bool,
    are_texts: bool,
    data: st.DataObject,
) -> None:
    """Every form, one class per record or several, skips and no answer yet, any words in classes and records."""
    try:
        if are_texts and kind != "coco":
            rows = data.draw(st.lists(st.tuples(ANY, ANY), min_size=len(IDS), max_size=len(IDS)))
            of = Pool(
                name="n",
                ids=np.asarray(IDS),
                records=TextRecords(rows),
                classes=tuple(classes),
                multi_label=several,
            )
        else:
            images = np.zeros((len(IDS), 1, 8, 8), dtype=np.uint8)
            of = from_arrays(images, classes=classes, ids=IDS, multi_label=several)
    except InvalidArgument:
        # Classes that look the same to a person are refused when the pool is made.
        return
    label = (
        st.lists(st.sampled_from([0.0, 1.0]), min_size=len(classes), max_size=len(classes))
        if several
        else st.sampled_from(classes)
    )
    given_answers = data.draw(st.dictionaries(st.sampled_from(IDS), label | st.sampled_from([SKIPPED, CANNOT_TELL])))
    file = exported(tmp_path_factory.mktemp("any") / "out", of, kind)
    assert answers_in(file, of) == {}
    FILL[kind](file, given_answers, of.classes)
    assert answers_in(file, of) == {
        name: tuple(answer) if isinstance(answer, list) else answer if answer in NO_LABEL else classes.index(answer)
        for name, answer in given_answers.items()
        # There, none of the classes and no answer yet look the same.
        if not (kind == "coco" and isinstance(answer, list) and not any(answer))
    }


SOFFICE = shutil.which("soffice") or shutil.which("libreoffice")


@pytest.mark.skipif(SOFFICE is None, reason="needs LibreOffice")
@pytest.mark.parametrize("back", ["csv", "xlsx"])
def test_libreoffice_saves_what_we_read(tmp_path: Path, back: str) -> None:
    of = pool(False)
    file = exported(tmp_path / "out", of, "xlsx")
    fill_excel(file, ANSWERS)
    assert SOFFICE is not None
    # As a person saves it: commas, quotes, UTF-8.
    form = "csv:Text - txt - csv (StarCalc):44,34,76,1" if back == "csv" else back
    command = [SOFFICE, "--headless", f"-env:UserInstallation=file://{tmp_path}/profile", "--convert-to", form]
    subprocess.run([*command, "--outdir", tmp_path / "back", file], check=True, capture_output=True, timeout=120)
    assert answers_in(tmp_path / "back" / f"labels.{back}", of) == expected(ANSWERS, back)


def test_formulas_are_shown_and_not_run() -> None:
    assert [harmless(text) for text in ("=1", "+1", "-1", "@a", "a", "")] == ["'=1", "'+1", "'-1", "'@a", "a", ""]
