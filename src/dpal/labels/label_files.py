"""Label files: what people fill in with their own tools, with the images next to it, and the answers from it."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from dpal.data import Pool
from dpal.data.class_labels import composed
from dpal.data.records import TextRecords
from dpal.errors import InvalidArgument, LabelsRefused, MissingData
from dpal.labels.answers import CANNOT_TELL, NO_LABEL, SKIPPED, Answer, allowed_answers, read_answer, word_for_no_label
from dpal.labels.label_rows import rows_of
from dpal.labels.label_sheets import WRITERS, Line, Sheet
from dpal.labels.pictures import are_pictures, as_png, picture_of
from dpal.labels.public_names import Names

DEFAULT_KIND = "csv"
HOW_TO = "README.txt"
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A line of the table: what it is called there, the records that it shows, and whom they belong to."""

    name: str
    ids: tuple[str, ...]
    unit: str | None = None


def write_label_files(
    pool: Pool,
    questions: Sequence[Question],
    folder: Path,
    *,
    unit_heading: str = "unit",
    kind: str = DEFAULT_KIND,
    guidelines: str = "",
) -> Path:
    """Write a folder with the questions, each with a place for its label, the images as PNG files, and how to answer.

    They are in the order of their names, which says nothing about scores or, if names are opaque, about ids; the
    records of a unit stand together. Returns the file that people fill in.
    """
    if kind not in WRITERS:
        raise InvalidArgument("the kind of label file", kind, f"one of {', '.join(WRITERS)}")
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
        files, texts = _images(shown, draft), _texts(shown)
        ends = list(accumulate(len(line.ids) for line in lines))
        places = [range(end - len(line.ids), end) for end, line in zip(ends, lines, strict=True)]
        sheet = Sheet(
            lines=tuple(
                Line(
                    name=line.name,
                    unit=line.unit,
                    files=tuple(files[place] for place in rows) if files else (),
                    texts=tuple(texts[place] for place in rows) if texts else (),
                )
                for line, rows in zip(lines, places, strict=True)
            ),
            classes=pool.classes,
            multi_label=pool.multi_label,
            unit_heading=unit_heading,
        )
        written = WRITERS[kind](sheet, draft).name
        (draft / HOW_TO).write_text(_how_to(sheet, written, guidelines), encoding="utf-8")
        if folder.exists():
            folder.rmdir()
        draft.replace(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder / written


def _how_to(sheet: Sheet, file: str, guidelines: str) -> str:
    """What people need to know, in a text file next to the one that they fill in."""
    if sheet.multi_label:
        answer = "For each class: 1 if the record has it, 0 if not."
    else:
        answer = "One of the classes, spelled as below."
    return "\n".join(
        [
            *([guidelines.strip(), ""] if guidelines.strip() else []),
            f"Fill in {file}, and send it back. What is left empty comes again in the next file.",
            answer,
            f"Or: {CANNOT_TELL} (you looked, and it cannot be decided), {SKIPPED} (you do not want to answer it).",
            "",
            "Classes:",
            *(f"  {name}" for name in sheet.classes),
            "",
        ]
    )


def _texts(pool: Pool) -> list[tuple[str, ...]]:
    return list(pool.records.texts) if isinstance(pool.records, TextRecords) else []


def _images(pool: Pool, folder: Path) -> list[str]:
    """The names of image files, which are written here; none where the records are not images."""
    if not are_pictures(pool.records):
        # Numbers that are not an image: there is only the name.
        return []
    (folder / "images").mkdir()
    files: list[str] = []
    for row in range(len(pool)):
        file = f"images/{row + 1:06d}.png"
        (folder / file).write_bytes(as_png(picture_of(pool.records, row)))
        files.append(file)
    return files


def read_label_file(
    file: Path, pool: Pool, asked: set[str], *, names: Names, withdrawn: frozenset[str] = frozenset()
) -> dict[str, Answer]:
    """The answers in a file of any kind that dpal labels export writes, by the records' own ids.

    An empty label is not an answer yet. All lines are checked; if anything is wrong, every problem is listed and
    nothing is returned. Answers about withdrawn records are not read and are returned as skipped.
    """
    if not file.is_file():
        raise MissingData(f"There is no file {file}.")
    problems: list[str] = []
    answers: dict[str, Answer] = {}
    for row in rows_of(file, pool.classes, multi_label=pool.multi_label):
        if not any(row.cells):
            continue
        record_id = names.id_of(row.name)
        if record_id is None:
            problems.append(f"{row.place}: {names.problem_with(row.name)}")
            continue
        name = names.name_of(record_id)
        if record_id in withdrawn:
            answers[record_id] = SKIPPED
            continue
        if record_id not in asked:
            problems.append(f"{row.place}: the id {name!r} was not asked for")
            continue
        try:
            answer = _read_cells(list(row.cells), name, pool)
        except (InvalidArgument, ValueError) as error:
            problems.append(f"{row.place}: {error}")
            continue
        if record_id in answers and answers[record_id] != answer:
            problems.append(f"{row.place}: the id {name!r} appears twice with different answers")
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
