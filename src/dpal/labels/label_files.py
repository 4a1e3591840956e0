"""Label files: a table for people to fill in, with the images next to it, and the answers from such a table."""

import csv
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from dpal.data import Pool
from dpal.data.class_labels import composed
from dpal.data.records import TextRecords
from dpal.errors import InvalidArgument, LabelsRefused, MissingData
from dpal.labels.answers import NO_LABEL, SKIPPED, Answer, allowed_answers, read_answer, word_for_no_label
from dpal.labels.pictures import are_pictures, as_png, picture_of
from dpal.labels.public_names import Names

TABLE = "labels.csv"
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A line of the table: what it is called there, the records that it shows, and whom they belong to."""

    name: str
    ids: tuple[str, ...]
    unit: str | None = None


def write_label_files(pool: Pool, questions: Sequence[Question], folder: Path, *, unit_heading: str = "unit") -> Path:
    """Write a folder with labels.csv, one line per question with an empty label, and the images as PNG files.

    Lines are in the order of their names, which says nothing about scores or, if names are opaque, about ids; the
    records of a unit stand together.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidArgument("the folder for the export", str(folder), "new or empty")
    if pool.multi_label and "id" in pool.classes:
        raise LabelsRefused(
            "A class is called 'id', but the table needs that column for the records. Rename the class."
        )
    lines = sorted(questions, key=lambda question: (question.unit or "", question.name))
    shown = pool.take([record_id for line in lines for record_id in line.ids])
    draft = folder.with_name(f".{folder.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        columns = _by_line(_columns(shown, draft), [len(line.ids) for line in lines])
        if any(line.unit is not None for line in lines):
            columns = {unit_heading: [line.unit or "" for line in lines], **columns}
        answers = pool.classes if pool.multi_label else ("label",)
        with (draft / TABLE).open("w", newline="", encoding="utf-8-sig") as table:
            writer = csv.writer(table)
            writer.writerow(["id", *(_free_heading(name, (*answers, "id")) for name in columns), *answers])
            for row, line in enumerate(lines):
                cells = (harmless(column[row]) for column in columns.values())
                writer.writerow([line.name, *cells, *("" for _ in answers)])
        if folder.exists():
            folder.rmdir()
        draft.replace(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder / TABLE


def _by_line(columns: dict[str, list[str]], counts: Sequence[int]) -> dict[str, list[str]]:
    """The columns with a row for each line: one with several records has them side by side."""
    most = max(counts)
    if most == 1:
        return columns
    ends = list(accumulate(counts))
    spread: dict[str, list[str]] = {}
    for number in range(most):
        for name, cells in columns.items():
            spread[f"{name} {number + 1}"] = [
                cells[end - count + number] if number < count else "" for end, count in zip(ends, counts, strict=True)
            ]
    return spread


def _free_heading(name: str, taken: Sequence[str]) -> str:
    """A heading that is not the name of a class."""
    return name if name not in taken else _free_heading(f"{name} ", taken)


def harmless(text: str) -> str:
    """A text that a spreadsheet shows and does not run as a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _columns(pool: Pool, folder: Path) -> dict[str, list[str]]:
    """What shows the records to a person: texts, or the names of image files, which are written here."""
    if isinstance(pool.records, TextRecords):
        count = len(pool.records.texts[0])
        names = ["text"] if count == 1 else [f"text {number + 1}" for number in range(count)]
        return {name: [texts[i] for texts in pool.records.texts] for i, name in enumerate(names)}
    if not are_pictures(pool.records):
        # Numbers that are not an image: there is only the name.
        return {}
    (folder / "images").mkdir()
    files: list[str] = []
    for row in range(len(pool)):
        file = f"images/{row + 1:06d}.png"
        (folder / file).write_bytes(as_png(picture_of(pool.records, row)))
        files.append(file)
    return {"file": files}


def read_label_file(
    file: Path, pool: Pool, asked: set[str], *, names: Names, withdrawn: frozenset[str] = frozenset()
) -> dict[str, Answer]:
    """The answers in a table with the columns id and label (or one column per class), by the records' own ids.

    An empty label is not an answer yet. All lines are checked; if anything is wrong, every problem is listed and
    nothing is returned. Answers about withdrawn records are not read and are returned as skipped.
    """
    if not file.is_file():
        raise MissingData(f"There is no file {file}.")
    wanted = ["id", *(pool.classes if pool.multi_label else ("label",))]
    problems: list[str] = []
    answers: dict[str, Answer] = {}
    for line, cells in _rows(file, wanted):
        given = [cell.strip() for cell in cells[1:]]
        if not any(given):
            continue
        record_id = names.id_of(cells[0])
        if record_id is None:
            problems.append(f"line {line}: {names.problem_with(cells[0])}")
            continue
        name = names.name_of(record_id)
        if record_id in withdrawn:
            answers[record_id] = SKIPPED
            continue
        if record_id not in asked:
            problems.append(f"line {line}: the id {name!r} was not asked for")
            continue
        try:
            answer = _read_cells(given, name, pool)
        except (InvalidArgument, ValueError) as error:
            problems.append(f"line {line}: {error}")
            continue
        if record_id in answers and answers[record_id] != answer:
            problems.append(f"line {line}: the id {name!r} appears twice with different answers")
        answers[record_id] = answer
    if problems:
        raise labels_refused(str(file), problems)
    return answers


def labels_refused(source: str, problems: Sequence[str]) -> LabelsRefused:
    """The error that lists what is wrong with answers of which none was taken."""
    more = [f"and {len(problems) - _SHOWN:,} more"] if len(problems) > _SHOWN else []
    listed = "\n".join(f"  {problem}" for problem in (*problems[:_SHOWN], *more))
    return LabelsRefused(f"{len(problems):,} problem(s) in {source}. None of its labels were taken:\n{listed}")


def _read_cells(given: list[str], name: str, pool: Pool) -> Answer:
    """The checked answer in one line's cells: a class by its name, a word for no label, or one number per class."""
    classes = pool.classes
    words = {word_for_no_label(cell, classes) for cell in given if cell}
    if len(words) == 1 and (word := words.pop()) is not None:
        return word
    if not pool.multi_label:
        return read_answer(_class_meant(given[0], name, classes), name, classes, multi_label=False)
    try:
        targets = [float(cell) for cell in given]
    except ValueError as error:
        allowed = f"{len(classes)} numbers from 0 to 1, or one of {', '.join(NO_LABEL)} alone"
        raise InvalidArgument(f"the answer for {name!r}", given, allowed) from error
    return read_answer(targets, name, classes, multi_label=True)


def _class_meant(text: str, name: str, classes: tuple[str, ...]) -> str:
    """By name only: a number could be counted from 0 or from 1."""
    if text in classes:
        return text
    alike = [known for known in classes if composed(known).casefold() == composed(text).casefold()]
    if len(alike) != 1:
        raise InvalidArgument(f"the answer for {name!r}", text, allowed_answers(classes))
    return alike[0]


def _rows(file: Path, wanted: list[str]) -> list[tuple[int, list[str]]]:
    """The wanted cells of each line, with any of the three usual separators."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            start = lines.tell()
            first = lines.readline()
            if first.lower().startswith("sep="):
                # Excel's way to state the separator.
                start, first = lines.tell(), lines.readline()
            separator = max(",;\t", key=first.count)
            lines.seek(start)
            reader = csv.reader(lines, delimiter=separator, strict=True)
            header = [_heading(cell, wanted) for cell in next(reader, [])]
            missing = [name for name in wanted if name not in header]
            if missing:
                raise LabelsRefused(
                    f"{file} has no column {', '.join(missing)}; its columns are: {', '.join(header) or 'none'}. No "
                    "label was taken."
                )
            twice = [name for name in wanted if header.count(name) > 1]
            if twice:
                raise LabelsRefused(f"{file} has the column {', '.join(twice)} twice. No label was taken.")
            places = [header.index(name) for name in wanted]
            lines_of_cells: list[tuple[int, list[str]]] = []
            for row in reader:
                if not any(cell.strip() for cell in row):
                    continue
                if len(row) <= max(places) or any(cell.strip() for cell in row[len(header) :]):
                    raise LabelsRefused(
                        f"Line {reader.line_num} of {file} has {len(row)} cells, but the header has {len(header)}. No "
                        "label was taken."
                    )
                lines_of_cells.append((reader.line_num, [row[place] for place in places]))
            return lines_of_cells
    except (csv.Error, UnicodeDecodeError) as error:
        raise LabelsRefused(
            f"{file} cannot be read as a table in UTF-8 ({error}). Save it as CSV (UTF-8). No label was taken."
        ) from error


def _heading(cell: str, wanted: Sequence[str]) -> str:
    """A column's name; id and label may be written in capitals."""
    text = cell.strip()
    text = next((name for name in wanted if composed(name) == composed(text)), text)
    return text.lower() if text not in wanted and text.lower() in ("id", "label") else text
