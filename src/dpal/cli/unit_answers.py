"""What the questions of `dpal init` check and suggest about units: whom records belong to. Only ids are read."""

from functools import lru_cache
from pathlib import Path

import numpy as np

from dpal.cli.answered_config import unit_of
from dpal.cli.questions import NO, YES, Answers, WrongAnswer
from dpal.data import Pool, UnitRule, from_arrays
from dpal.data.folders import image_ids
from dpal.data.likely_units import likely_pattern
from dpal.data.tables import column_names, read_columns

WAYS = ("column", "file", "pattern")
WAY_WORDS = {
    "column": "the column",
    "file": "the table (columns id and unit)",
    "pattern": "the pattern (a regular expression on ids)",
}
_UNIT_COLUMNS = ("patient", "patient_id", "subject", "person", "customer", "unit", "lesion", "lesion_id")


def known_ids(answers: Answers) -> list[str]:
    """The ids of the pool, where they can be read without any record."""
    match answers["source"]:
        case "image-folder":
            return _folder_ids(answers["place"])
        case "table" if answers.get("id_column"):
            column = answers["id_column"]
            return [str(value) for value in read_columns(Path(answers["place"]), [column]).get(column, ())]
        case _:
            return []


@lru_cache(maxsize=1)
def _folder_ids(folder: str) -> list[str]:
    return image_ids(Path(folder))


def what_ids_look_like(answers: Answers) -> str:
    """A warning where several ids seem to be of one person."""
    pattern = likely_pattern(known_ids(answers))
    return "" if pattern is None else f"The ids look as if they were: many begin alike ({pattern})."


def several_default(answers: Answers) -> str:
    return NO if likely_pattern(known_ids(answers)) is None and not _unit_column(answers) else YES


def word(typed: str, answers: Answers) -> str:
    """A word for a unit."""
    if not typed or typed == "record" or not typed.isprintable():
        raise WrongAnswer("Give a word such as patient.")
    return typed


def way_default(answers: Answers) -> str:
    return "column" if _unit_column(answers) else "pattern" if likely_pattern(known_ids(answers)) else "file"


def way(typed: str, answers: Answers) -> str:
    """One of the ways that the source allows."""
    if typed not in WAYS:
        raise WrongAnswer(f"{typed!r} is not one of {', '.join(WAYS)}.")
    if typed == "column" and answers["source"] not in ("table", "hugging-face"):
        raise WrongAnswer("These records have no columns. Answer file or pattern.")
    return typed


def is_default(answers: Answers) -> str:
    match answers["unit_from"]:
        case "column":
            return _unit_column(answers)
        case "pattern":
            return likely_pattern(known_ids(answers)) or ""
        case _:
            return ""


def checked_rule(typed: str, answers: Answers) -> str:
    """A column, file or pattern that names a unit for every id, where the ids can be read already."""
    if not typed:
        raise WrongAnswer(f"Give {WAY_WORDS[answers['unit_from']]}.")
    if answers["unit_from"] == "column":
        if answers["source"] == "table" and typed not in (known := column_names(Path(answers["place"]))):
            raise WrongAnswer(f"There is no column {typed!r}. The columns are {', '.join(known)}.")
        return typed
    value = str(Path(typed).expanduser().resolve()) if answers["unit_from"] == "file" else typed
    if ids := known_ids(answers):
        UnitRule(**(unit_of({**answers, "unit_is": value}) or {})).applied(_only_ids(ids))
    return value


def _only_ids(ids: list[str]) -> Pool:
    return from_arrays(np.zeros((len(ids), 1)), classes=["a", "b"], ids=ids)


def _unit_column(answers: Answers) -> str:
    if answers["source"] != "table":
        return ""
    return next((name for name in column_names(Path(answers["place"])) if name.lower() in _UNIT_COLUMNS), "")
