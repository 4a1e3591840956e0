"""What people who label with their own tools are given: the questions as a table, a spreadsheet, JSON lines, COCO or
Label Studio tasks. Each has the questions, what shows them, and a place for the answer.
"""

import csv
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpal.imports import optional
from dpal.labels.answers import NO_LABEL
from dpal.labels.label_studio import labelling_interface, task_of

# What a workbook, which is XML, cannot hold; and how much fits into a cell.
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MOST_IN_A_CELL = 32_767
_CUT = " … (the rest does not fit into a cell)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A question: its name, its unit where several stand together, and the files or texts that show each record."""

    name: str
    unit: str | None
    files: tuple[str, ...] = ()
    texts: tuple[tuple[str, ...], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """All questions, in the order in which people see them."""

    lines: tuple[Line, ...]
    classes: tuple[str, ...]
    multi_label: bool
    unit_heading: str

    @property
    def answers(self) -> tuple[str, ...]:
        """The columns that people fill in."""
        return self.classes if self.multi_label else ("label",)

    def columns(self) -> dict[str, list[str]]:
        """What shows the questions, by heading: one with several records has them side by side."""
        most_files = max(len(line.files) for line in self.lines)
        most_texts = max(len(line.texts) for line in self.lines)
        columns: dict[str, list[str]] = {}
        if any(line.unit is not None for line in self.lines):
            columns[self.unit_heading] = [line.unit or "" for line in self.lines]
        for number in range(most_files):
            heading = "file" if most_files == 1 else f"file {number + 1}"
            columns[heading] = [line.files[number] if number < len(line.files) else "" for line in self.lines]
        parts = max((len(texts) for line in self.lines for texts in line.texts), default=0)
        for number in range(most_texts):
            for part in range(parts):
                name = "text" if parts == 1 else f"text {part + 1}"
                heading = name if most_texts == 1 else f"{name} {number + 1}"
                columns[heading] = [line.texts[number][part] if number < len(line.texts) else "" for line in self.lines]
        return {_free_heading(heading, (*self.answers, "id")): cells for heading, cells in columns.items()}


def _free_heading(name: str, taken: tuple[str, ...]) -> str:
    """A heading that is not the name of a class."""
    return name if name not in taken else _free_heading(f"{name} ", taken)


def harmless(text: str) -> str:
    """A text that a spreadsheet shows and does not run as a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _write_csv(sheet: Sheet, folder: Path) -> Path:
    columns = sheet.columns()
    with (folder / "labels.csv").open("w", newline="", encoding="utf-8-sig") as table:
        writer = csv.writer(table)
        writer.writerow(["id", *columns, *sheet.answers])
        for row, line in enumerate(sheet.lines):
            cells = (harmless(column[row]) for column in columns.values())
            writer.writerow([line.name, *cells, *("" for _ in sheet.answers)])
    return folder / "labels.csv"


def _write_excel(sheet: Sheet, folder: Path) -> Path:
    """A workbook whose cells for answers offer the classes."""
    openpyxl = optional("openpyxl", extra="excel")
    validation = optional("openpyxl.worksheet.datavalidation", extra="excel")
    columns = sheet.columns()
    book = openpyxl.Workbook()
    table = book.active
    table.title = "labels"
    headings = ["id", *columns, *sheet.answers]
    for row, cells in enumerate([headings, *_rows_of(sheet, columns)], start=1):
        for column, text in enumerate(cells, start=1):
            cell = table.cell(row, column)
            # As a text: a formula is not run, and a name such as 0012 keeps its zeros.
            cell.value, cell.number_format = (text or None), "@"
            cell.data_type = "s" if text else cell.data_type
    table.freeze_panes = "B2"
    choices = '"0,1"' if sheet.multi_label else _choices(book, sheet.classes)
    if choices is not None:
        rule = validation.DataValidation(type="list", formula1=choices, allow_blank=True)
        first, last = len(headings) - len(sheet.answers) + 1, len(headings)
        letters = [table.cell(1, column).column_letter for column in (first, last)]
        rule.add(f"{letters[0]}2:{letters[1]}{len(sheet.lines) + 1}")
        # A suggestion: skip and cannot-tell may be typed where each class has a column.
        rule.showErrorMessage = False
        table.add_data_validation(rule)
    book.save(folder / "labels.xlsx")
    return folder / "labels.xlsx"


def _rows_of(sheet: Sheet, columns: dict[str, list[str]]) -> list[list[str]]:
    return [
        [line.name, *(_in_a_cell(column[row]) for column in columns.values()), *("" for _ in sheet.answers)]
        for row, line in enumerate(sheet.lines)
    ]


def _in_a_cell(text: str) -> str:
    """With a mark where a character cannot be shown, and where the end is missing."""
    text = _NOT_IN_XML.sub("\ufffd", text)
    return text if len(text) <= _MOST_IN_A_CELL else text[: _MOST_IN_A_CELL - len(_CUT)] + _CUT


def _choices(book: Any, classes: tuple[str, ...]) -> str | None:
    """A second sheet with all answers, which the cells refer to."""
    listed = book.create_sheet("answers")
    for row, name in enumerate((*classes, *NO_LABEL), start=1):
        listed.cell(row, 1).value = name
        listed.cell(row, 1).data_type = "s"
    return f"answers!$A$1:$A${len(classes) + len(NO_LABEL)}"


def _write_json_lines(sheet: Sheet, folder: Path) -> Path:
    columns = sheet.columns()
    with (folder / "labels.jsonl").open("w", encoding="utf-8") as file:
        for row, line in enumerate(sheet.lines):
            shown = {heading: cells[row] for heading, cells in columns.items() if cells[row]}
            file.write(json.dumps({"id": line.name, **shown, "label": None}, ensure_ascii=False) + "\n")
    return folder / "labels.jsonl"


def _write_coco(sheet: Sheet, folder: Path) -> Path:
    """Images and categories as COCO has them, without boxes: an annotation says that an image has a class."""
    images = [
        {"id": number, "file_name": file, "question": line.name}
        for number, (line, file) in enumerate(((line, file) for line in sheet.lines for file in line.files), start=1)
    ]
    names = sheet.classes if sheet.multi_label else (*sheet.classes, *NO_LABEL)
    categories = [{"id": number, "name": name} for number, name in enumerate(names, start=1)]
    document = {"images": images, "categories": categories, "annotations": []}
    (folder / "labels.coco.json").write_text(json.dumps(document, ensure_ascii=False, indent=1), encoding="utf-8")
    return folder / "labels.coco.json"


def _write_label_studio(sheet: Sheet, folder: Path) -> Path:
    """Tasks to import into a Label Studio project, and the labelling interface to set up in it."""
    tasks = [task_of(line.name, files=line.files, texts=line.texts) for line in sheet.lines]
    (folder / "tasks.json").write_text(json.dumps(tasks, ensure_ascii=False, indent=1), encoding="utf-8")
    interface = labelling_interface(
        sheet.classes,
        multi_label=sheet.multi_label,
        pictures=max(len(line.files) for line in sheet.lines),
        texts=max((sum(map(len, line.texts)) for line in sheet.lines), default=0),
    )
    (folder / "interface.xml").write_text(interface, encoding="utf-8")
    return folder / "tasks.json"


WRITERS: dict[str, Callable[[Sheet, Path], Path]] = {
    "csv": _write_csv,
    "xlsx": _write_excel,
    "jsonl": _write_json_lines,
    "coco": _write_coco,
    "label-studio": _write_label_studio,
}
