"""Files to and from the people who label: a table to fill in, with the images beside it."""

import csv
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpal.campaign.answers import read_answer, word_for_no_label
from dpal.campaign.facts import NO_LABEL, SKIPPED, Answer
from dpal.campaign.public_names import Names
from dpal.data import Pool
from dpal.data.images import ImageRecords
from dpal.data.records import Records, Subset, TextRecords
from dpal.errors import InvalidArgument, LabelsRefused, MissingData
from dpal.imports import optional

TABLE = "labels.csv"
_SHOWN = 20


def export_requests(pool: Pool, ids: Sequence[str], folder: Path, *, names: Names) -> Path:
    """A folder with labels.csv, one line per record with the label left empty, and the images as PNG files.

    The order is that of the names, which tells nothing about scores, nor, where names are opaque, about ids.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidArgument("the folder for the export", str(folder), "one that is new or empty")
    if pool.multi_label and "id" in pool.classes:
        raise InvalidArgument("a class", "id", "called otherwise: the table needs the column id for the records")
    few = pool.take(sorted(ids, key=names.name_of))
    draft = folder.with_name(f".{folder.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        columns = _columns(few, draft)
        answers = pool.classes if pool.multi_label else ("label",)
        with (draft / TABLE).open("w", newline="", encoding="utf-8-sig") as lines:
            writer = csv.writer(lines)
            writer.writerow(["id", *(_free(name, answers) for name in columns), *answers])
            for row, name in enumerate(few.ids):
                shown = (_harmless(column[row]) for column in columns.values())
                writer.writerow([names.name_of(str(name)), *shown, *("" for _ in answers)])
        if folder.exists():
            folder.rmdir()
        draft.replace(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder / TABLE


def _free(name: str, taken: Sequence[str]) -> str:
    """The name of a column that no class has."""
    return name if name not in taken else _free(f"{name} ", taken)


def _harmless(text: str) -> str:
    """A text that a spreadsheet shows instead of running it as a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _columns(few: Pool, folder: Path) -> dict[str, list[str]]:
    """What lets a person see the record."""
    if isinstance(few.records, TextRecords):
        count = len(few.records.texts[0])
        names = ["text"] if count == 1 else [f"text {number + 1}" for number in range(count)]
        return {name: [texts[i] for texts in few.records.texts] for i, name in enumerate(names)}
    part = few.records.form.get("")
    if part is None or part.dtype != np.uint8 or len(part.shape) != 3 or part.shape[0] not in (1, 3):
        # Numbers that no picture shows: the name must do.
        return {}
    library = optional("PIL.Image", extra="data")
    (folder / "images").mkdir()
    files: list[str] = []
    for row in range(len(few)):
        file = f"images/{row + 1:06d}.png"
        library.fromarray(_pixels(few.records, row)).save(folder / file)
        files.append(file)
    return {"file": files}


def _pixels(records: Records, row: int) -> NDArray[np.uint8]:
    """One image as it is in the source: larger than what the model sees, where the source has it."""
    base = records.whole if isinstance(records, Subset) else records
    position = int(records.positions[row]) if isinstance(records, Subset) else row
    if isinstance(base, ImageRecords):
        return base.picture(position)
    values = np.asarray(records.read(np.asarray([row])))[0].astype(np.uint8)
    return values[0] if len(values) == 1 else values.transpose(1, 2, 0)


def read_answers(
    file: Path, pool: Pool, asked: set[str], *, names: Names, withdrawn: frozenset[str] = frozenset()
) -> dict[str, Answer]:
    """The answers in a table with the columns id and label (or one column per class), by the records' own ids.

    Empty labels are not answers yet.

    Everything is checked; if anything is wrong, all of it is listed and nothing is taken. Answers for withdrawn records
    are not looked at and are given back as skipped.
    """
    if not file.is_file():
        raise MissingData(f"There is no file {file}.")
    wanted = ["id", *(pool.classes if pool.multi_label else ("label",))]
    problems: list[str] = []
    found: dict[str, Answer] = {}
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
            found[record_id] = SKIPPED
            continue
        if record_id not in asked:
            problems.append(f"line {line}: the id {name!r} was not asked for")
            continue
        try:
            answer = _answer(given, name, pool)
        except (InvalidArgument, ValueError) as error:
            problems.append(f"line {line}: {error}")
            continue
        if record_id in found and found[record_id] != answer:
            problems.append(f"line {line}: the id {name!r} stands twice with different answers")
        found[record_id] = answer
    if problems:
        more = [f"and {len(problems) - _SHOWN:,} more"] if len(problems) > _SHOWN else []
        listed = "\n".join(f"  {each}" for each in (*problems[:_SHOWN], *more))
        raise LabelsRefused(f"{file} was not taken, none of it, because of {len(problems):,} problem(s):\n{listed}")
    return found


def _named(text: str, name: str, classes: tuple[str, ...]) -> str:
    """The class a person means, by its name. A number could be counted from 0 or from 1, so it is no name."""
    if text in classes or word_for_no_label(text, classes) is not None:
        return text
    alike = [each for each in classes if each.casefold() == text.casefold()]
    if len(alike) != 1:
        raise InvalidArgument(
            f"the answer for {name!r}", text, f"one of {', '.join(classes)}, or {' or '.join(NO_LABEL)}"
        )
    return alike[0]


def _answer(given: list[str], name: str, pool: Pool) -> Answer:
    if not pool.multi_label:
        return read_answer(_named(given[0], name, pool.classes), name, pool.classes, False)
    words = {word_for_no_label(each, pool.classes) for each in given if each}
    if len(words) == 1 and None not in words:
        return words.pop() or NO_LABEL[0]
    try:
        return read_answer([float(each) for each in given], name, pool.classes, True)
    except ValueError as error:
        allowed = f"{len(pool.classes)} numbers from 0 to 1, or one of {', '.join(NO_LABEL)} alone"
        raise InvalidArgument(f"the answer for {name!r}", given, allowed) from error


def _rows(file: Path, wanted: list[str]) -> list[tuple[int, list[str]]]:
    """The wanted cells of each line, whichever of the three usual separators the table has."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            start = lines.tell()
            first = lines.readline()
            if first.lower().startswith("sep="):
                # Excel's own way to say what separates cells.
                start, first = lines.tell(), lines.readline()
            separator = max(",;\t", key=first.count)
            lines.seek(start)
            reader = csv.reader(lines, delimiter=separator, strict=True)
            header = [_heading(cell, wanted) for cell in next(reader, [])]
            missing = [name for name in wanted if name not in header]
            if missing:
                raise LabelsRefused(
                    f"{file} has no column {', '.join(missing)}; it has {', '.join(header) or 'none'}. None was taken."
                )
            twice = [name for name in wanted if header.count(name) > 1]
            if twice:
                raise LabelsRefused(f"{file} has the column {', '.join(twice)} twice. Nothing was taken.")
            places = [header.index(name) for name in wanted]
            found: list[tuple[int, list[str]]] = []
            for row in reader:
                if not any(cell.strip() for cell in row):
                    continue
                if len(row) <= max(places) or any(cell.strip() for cell in row[len(header) :]):
                    raise LabelsRefused(
                        f"{file} was not taken: line {reader.line_num} has {len(row)} cells, the header {len(header)}."
                    )
                found.append((reader.line_num, [row[place] for place in places]))
            return found
    except (csv.Error, UnicodeDecodeError) as error:
        raise LabelsRefused(
            f"{file} cannot be read as a table in UTF-8 ({error}). Save it as CSV (UTF-8). Nothing was taken."
        ) from error


def _heading(cell: str, wanted: Sequence[str]) -> str:
    """A column's name; id and label may be written in capitals."""
    text = cell.strip()
    return text.lower() if text not in wanted and text.lower() in ("id", "label") else text
