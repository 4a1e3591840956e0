"""The answers in files of several kinds, as rows of cells: where a row stands, the question's name, and its cells.

The kinds: tables (CSV with any of three separators, Excel), JSON lines, COCO, and what Label Studio exports.
"""

import csv
import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from dpal.data.class_labels import composed
from dpal.errors import LabelsRefused
from dpal.imports import optional
from dpal.labels.label_studio import NAME, answer_of, newest, no_label_of


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its place in words, the question's name, and a cell for each column that people fill in."""

    place: str
    name: str
    cells: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for: one column for the label or, with several labels per record, one for each class."""

    classes: tuple[str, ...]
    multi_label: bool

    @property
    def answers(self) -> tuple[str, ...]:
        return self.classes if self.multi_label else ("label",)

    def alone(self, text: str) -> tuple[str, ...]:
        """A single word in the first cell: for no label, or one that is refused later."""
        return (text, *("" for _ in self.answers[1:]))

    def chosen(self, names: Sequence[str]) -> tuple[str, ...]:
        """Which of several classes were chosen."""
        if words := [name for name in names if name not in self.classes]:
            return self.alone(words[0])
        return tuple("1" if name in names else "0" for name in self.classes)


def rows_of(file: Path, classes: Sequence[str], *, multi_label: bool) -> list[Row]:
    """The rows of a file. One that cannot be read is refused, with nothing taken."""
    reader = _READERS.get(file.suffix.lower(), _table)
    try:
        return reader(file, Wanted(tuple(classes), multi_label))
    except (csv.Error, UnicodeDecodeError) as error:
        form, advice = ("JSON", "UTF-8") if reader in (_json_lines, _json_file) else ("a table", "CSV (UTF-8)")
        raise LabelsRefused(
            f"{file} cannot be read as {form} in UTF-8 ({error}). Save it as {advice}. No label was taken."
        ) from error
    # Besides JSON's own error, a ValueError: a number with thousands of digits.
    except (ValueError, RecursionError) as error:
        raise LabelsRefused(f"{file} cannot be read as JSON ({error}). No label was taken.") from error


def _table(file: Path, wanted: Wanted) -> list[Row]:
    """A table, with any of the three usual separators."""
    with file.open(newline="", encoding="utf-8-sig") as lines:
        start = lines.tell()
        first = lines.readline()
        if first.lower().startswith("sep="):
            # Excel's way to state the separator.
            start, first = lines.tell(), lines.readline()
        separator = max(",;\t", key=first.count)
        lines.seek(start)
        reader = csv.reader(lines, delimiter=separator, strict=True)
        header = next(reader, [])
        return _filled(file, header, ((reader.line_num, row) for row in reader), wanted)


def _excel(file: Path, wanted: Wanted) -> list[Row]:
    """The first sheet of a workbook, or the one called labels."""
    openpyxl = optional("openpyxl", extra="excel")
    try:
        with closing(openpyxl.load_workbook(file, read_only=True, data_only=True)) as book:
            sheet = book["labels"] if "labels" in book.sheetnames else book.worksheets[0]
            # Read here, and not when the workbook is opened: damage within a sheet shows now.
            rows = [[_as_text(cell) for cell in row] for row in sheet.iter_rows(values_only=True)]
    # openpyxl raises whatever a broken file leads to.
    except Exception as error:
        raise LabelsRefused(
            f"{file} cannot be read as a workbook (.xlsx; {type(error).__name__}). No label was taken."
        ) from error
    header = rows[0] if rows else []
    while header and not header[-1]:
        header.pop()
    return _filled(file, header, enumerate(rows[1:], start=2), wanted)


def _as_text(cell: object) -> str:
    """A cell as people see it: a whole number without a decimal point."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def _filled(file: Path, header: list[str], rows: Any, wanted: Wanted) -> list[Row]:
    """The wanted cells of each row that is not empty."""
    columns = ["id", *wanted.answers]
    headings = [_heading(cell, columns) for cell in header]
    if missing := [name for name in columns if name not in headings]:
        shown = ", ".join(headings) or "none"
        raise LabelsRefused(f"{file} has no column {', '.join(missing)}; its columns are: {shown}. No label was taken.")
    if twice := [name for name in columns if headings.count(name) > 1]:
        raise LabelsRefused(f"{file} has the column {', '.join(twice)} twice. No label was taken.")
    places = [headings.index(name) for name in columns]
    read: list[Row] = []
    for number, row in rows:
        if not any(cell.strip() for cell in row):
            continue
        if len(row) <= max(places) or any(cell.strip() for cell in row[len(headings) :]):
            raise LabelsRefused(
                f"Line {number} of {file} has {len(row)} cells, but the header has {len(headings)}. No label was taken."
            )
        name, *cells = (row[place] for place in places)
        read.append(Row(f"line {number}", name, tuple(cell.strip() for cell in cells)))
    return read


def _heading(cell: str, wanted: Sequence[str]) -> str:
    """A column's name; id and label may be written in capitals."""
    text = cell.strip()
    text = next((name for name in wanted if composed(name) == composed(text)), text)
    return text.lower() if text not in wanted and text.lower() in ("id", "label") else text


def _json_lines(file: Path, wanted: Wanted) -> list[Row]:
    """One object per line: id, and label (a name, a word for no label, or a list of names) or one number per class."""
    rows: list[Row] = []
    # Only at line feeds: JSON may hold the other characters that end a line in a text.
    for number, text in enumerate(file.read_text(encoding="utf-8-sig").split("\n"), start=1):
        if not text.strip():
            continue
        line: object = json.loads(text)
        if not isinstance(line, dict) or not isinstance(cast("dict[str, Any]", line).get("id"), str | int):
            raise LabelsRefused(f"Line {number} of {file} is not an object with an id. No label was taken.")
        known = cast("dict[str, Any]", line)
        rows.append(Row(f"line {number}", str(known["id"]), _cells(known, wanted)))
    return rows


def _cells(line: dict[str, Any], wanted: Wanted) -> tuple[str, ...]:
    label: object = line.get("label")
    if not wanted.multi_label:
        return ("" if label is None else _as_text(label),)
    if isinstance(label, list):
        return wanted.chosen([str(name) for name in cast("list[object]", label)])
    return wanted.alone(str(label)) if label is not None else tuple(_as_text(line.get(name)) for name in wanted.classes)


def _json_file(file: Path, wanted: Wanted) -> list[Row]:
    """COCO, or Label Studio's JSON."""
    document: object = json.loads(file.read_text(encoding="utf-8-sig"))
    try:
        if isinstance(document, list):
            return _label_studio(file, cast("list[dict[str, Any]]", document), wanted)
        if isinstance(document, dict) and {"images", "annotations", "categories"} <= set(document):
            return _coco(cast("dict[str, list[dict[str, Any]]]", document), wanted)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise LabelsRefused(
            f"{file} is not complete: {type(error).__name__} at {error}. No label was taken."
        ) from error
    raise LabelsRefused(f"{file} is neither COCO nor an export of Label Studio. No label was taken.")


def _coco(document: dict[str, list[dict[str, Any]]], wanted: Wanted) -> list[Row]:
    """An annotation says that an image has a class. An image without one has no answer yet."""
    categories = {category["id"]: str(category["name"]) for category in document["categories"]}
    images = {image["id"]: str(image.get("question") or image["file_name"]) for image in document["images"]}
    given: dict[str, list[str]] = {}
    for annotation in document["annotations"]:
        names = given.setdefault(images[annotation["image_id"]], [])
        if (name := categories[annotation["category_id"]]) not in names:
            names.append(name)
    return [
        # Two different classes where there is one label are a problem, which is listed like any other.
        Row(f"the image of {name}", name, wanted.chosen(names) if wanted.multi_label else (", ".join(names),))
        for name, names in given.items()
    ]


def _label_studio(file: Path, tasks: list[dict[str, Any]], wanted: Wanted) -> list[Row]:
    """The newest annotation of each task. Tasks without one have no answer yet."""
    rows: list[Row] = []
    for task in tasks:
        if "data" not in task:
            # Label Studio's other JSON has answers too, but not who gave them or when: they would be passed over.
            raise LabelsRefused(f"A task has no data. Export as JSON, not as JSON-MIN. No label was taken from {file}.")
        annotation = newest(task)
        if annotation is None:
            continue
        try:
            answer = answer_of(annotation, wanted.classes, multi_label=wanted.multi_label)
            if no_label_of(annotation, wanted.classes) in wanted.classes:
                answer = f"{answer} without a label, while a class is called so"
        except ValueError as error:
            answer = str(error)
        cells = tuple(f"{target:g}" for target in answer) if isinstance(answer, list) else wanted.alone(answer)
        rows.append(Row(f"task {task.get('id', '?')}", str(task["data"][NAME]), cells))
    return rows


_READERS: dict[str, Callable[[Path, Wanted], list[Row]]] = {
    ".xlsx": _excel,
    ".jsonl": _json_lines,
    ".json": _json_file,
}
