"""What the questions of `dpal init` check and suggest about data. Suggestions come from what is public.

Names of files, folders and columns are the operator's own. Classes are only ever suggested from a held-out set that was
declared public: collected from the pool, they would reveal that a rare one occurs.
"""

import json
import math
from functools import lru_cache
from pathlib import Path

import numpy as np

from dpal.cli.answered_config import config_of
from dpal.cli.questions import NONE, Answers, WrongAnswer
from dpal.data import Pool
from dpal.data.folders import SUFFIXES
from dpal.data.named.registry import DATASETS
from dpal.data.sources import SOURCES, open_pool
from dpal.data.tables import FORMATS, column_names, read_columns

PLACE_WORDS = {
    "table": f"the table ({', '.join(FORMATS)})",
    "image-folder": "the folder of images",
    "numpy": "the .npy file",
    "hugging-face": "the dataset's name on the hub, or its folder",
}
_ENDINGS = {"table": FORMATS, "numpy": (".npy",)}
_TEXT_COLUMNS, _IMAGE_COLUMNS = ("text", "note", "sentence", "content"), ("image", "img", "path", "file")
_LABEL_COLUMNS, _ID_COLUMNS = ("label", "class", "target"), ("id",)
# More classes than this are not typed in by people: the column is not a class.
_MOST_SUGGESTED = 100


def source(typed: str, answers: Answers) -> str:
    """A source, or a published dataset whose files are there."""
    if typed in DATASETS:
        pool_of({"source": typed})
    elif typed not in SOURCES:
        if Path(typed).expanduser().exists() and ("/" in typed or "." in typed):
            kind = "image-folder" if Path(typed).expanduser().is_dir() else "table"
            raise WrongAnswer(f"Here only its kind is asked, such as {kind}. The path is the next answer.")
        raise WrongAnswer(f"{typed!r} is not one of {', '.join((*SOURCES, *DATASETS))}.")
    return typed


def place(typed: str, answers: Answers) -> str:
    """An existing folder or file of the source, as an absolute path; or a name on the hub."""
    return _place(typed, answers["source"])


def _place(typed: str, kind: str) -> str:
    if not typed:
        raise WrongAnswer(f"Give {PLACE_WORDS[kind]}.")
    path = Path(typed).expanduser()
    if kind == "hugging-face":
        if typed.startswith(("~", ".", "/")) and not path.is_dir():
            raise WrongAnswer(f"There is no folder {path}.")
        # A name on the hub is not a path.
        return str(path.resolve()) if path.is_dir() else typed
    if kind == "image-folder":
        if not path.is_dir():
            raise WrongAnswer(f"There is no folder {path}.")
        if not any(file.suffix.lower() in SUFFIXES for file in path.rglob("*")):
            raise WrongAnswer(f"The folder {path} has no images ({', '.join(sorted(SUFFIXES))}).")
    elif not path.is_file():
        raise WrongAnswer(f"There is no file {path}.")
    elif path.suffix.lower() not in _ENDINGS[kind]:
        raise WrongAnswer(f"{path} does not end in {' or '.join(_ENDINGS[kind])}.")
    elif kind == "table" and not column_names(path):
        raise WrongAnswer(f"{path} is empty: it has no columns.")
    # Absolute, so that the configuration is valid from any folder.
    return str(path.resolve())


def only_place(answers: Answers) -> str:
    """The one folder or file here that may be meant; "" if there are none or several."""
    here = [path for path in sorted(Path().iterdir()) if not path.name.startswith(".")]
    match answers["source"]:
        case "image-folder":
            meant = [path for path in here if path.is_dir() and not (path / "campaign.db").exists()]
        case "hugging-face":
            meant = []
        case kind:
            meant = [path for path in here if path.suffix.lower() in _ENDINGS[kind] and path.is_file()]
    return str(meant[0]) if len(meant) == 1 else ""


def columns(answers: Answers, *, of: str = "place") -> list[str]:
    """The names of a table's columns; none for other sources, which are not opened just for a question."""
    return column_names(Path(answers[of])) if answers["source"] == "table" else []


def kind_of_records(answers: Answers) -> str:
    """The likelier of texts and images, by the columns' names."""
    names = [name.lower() for name in columns(answers)]
    return "images" if any(name in _IMAGE_COLUMNS for name in names) else "texts"


def content_columns(typed: str, answers: Answers) -> str | list[str]:
    """The column with the records; for texts it may be two, separated by commas."""
    if answers["kind"] == "images" or typed in columns(answers):
        return _known(typed, columns(answers))
    names = [_known(name.strip(), columns(answers)) for name in typed.split(",")]
    return names if len(names) > 1 else names[0]


def content_column_default(answers: Answers) -> str:
    """A column that sounds like the records, or else the first one."""
    return _likely(
        columns(answers), _TEXT_COLUMNS if answers["kind"] == "texts" else _IMAGE_COLUMNS, otherwise_first=True
    )


def id_column(typed: str, answers: Answers) -> str | None:
    """A column, or none."""
    return None if typed == NONE else _known(typed, columns(answers))


def id_column_default(answers: Answers) -> str:
    return _likely(columns(answers), _ID_COLUMNS) or NONE


def _known(name: str, known: list[str]) -> str:
    if not name:
        raise WrongAnswer("Give the column's name.")
    if known and name not in known:
        raise WrongAnswer(f"There is no column {name!r}. The columns are {', '.join(known)}.")
    return name


def _likely(names: list[str], wanted: tuple[str, ...], *, otherwise_first: bool = False) -> str:
    likely = [name for name in names if name.lower() in wanted]
    return likely[0] if likely else names[0] if names and otherwise_first else ""


def held_out(typed: str, answers: Answers) -> str | None:
    """Where the held-out set is: another place than the pool, or none."""
    if typed == NONE:
        return None
    if answers["source"] == "hugging-face":
        if typed == answers["split"]:
            raise WrongAnswer(f"{typed!r} is the pool itself. Held-out records must be others.")
        return typed
    chosen = _place(typed, answers["source"])
    mine, pool = Path(chosen), Path(answers["place"])
    if mine == pool or (mine.is_dir() and (pool in mine.parents or mine in pool.parents)):
        raise WrongAnswer(f"{mine} and the pool {pool} share records. Held-out records must be others.")
    if answers["source"] == "image-folder" and not class_folders(mine):
        raise WrongAnswer(f"{mine} has no folders. Its images must be in folders named after the classes.")
    return chosen


def class_folders(folder: Path) -> list[str]:
    """The folders right below, which are named after classes."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def held_out_labels(typed: str, answers: Answers) -> str:
    """The column with the held-out set's labels, or the file."""
    if answers["source"] == "numpy":
        return _place(typed, "numpy")
    return _known(typed, columns(answers, of="held_out"))


def held_out_labels_default(answers: Answers) -> str:
    return _likely(columns(answers, of="held_out"), _LABEL_COLUMNS)


def suggested_classes(answers: Answers) -> str:
    """The classes of a held-out set that was declared public. Nothing else is looked at."""
    if not answers.get("held_out") or not answers.get("held_out_is_public"):
        return ""
    names: list[str] = []
    match answers["source"]:
        case "image-folder":
            names = class_folders(Path(answers["held_out"]))
        case "table":
            column = answers["held_out_labels"]
            values = read_columns(Path(answers["held_out"]), [column])[column]
            names = sorted({str(value).strip() for value in values if value is not None and str(value).strip()})
        case "numpy":
            try:
                labels = np.load(answers["held_out_labels"], mmap_mode="r", allow_pickle=False)
            except ValueError:
                return ""
            if labels.dtype.kind in "iu" and labels.ndim == 1 and len(labels):
                names = [str(label) for label in range(int(labels.max()) + 1)]
        case _:
            pass
    if not 2 <= len(names) <= _MOST_SUGGESTED or any("," in name for name in names):
        return ""
    return ", ".join(names)


def classes(typed: str, answers: Answers) -> list[str]:
    """At least two different names."""
    names = [name.strip() for name in typed.split(",")]
    if not all(names) or not len(set(names)) == len(names) > 1:
        raise WrongAnswer("Give at least two different names, such as: healthy, ill")
    return names


def epsilon(typed: str, answers: Answers) -> float:
    """A finite number above 0."""
    try:
        value = float(typed)
    except ValueError as error:
        raise WrongAnswer(f"{typed!r} is not a number.") from error
    if not (math.isfinite(value) and value > 0):
        raise WrongAnswer("ε must be above 0 and finite.")
    return value


@lru_cache(maxsize=1)
def _opened(source: str, options: str) -> Pool:
    return open_pool(source, json.loads(options))


def pool_of(answers: Answers) -> Pool:
    """The pool that the answers describe, opened once for all questions about it."""
    data = config_of(answers)["data"]
    return _opened(data["source"], json.dumps(data.get("options", {}), sort_keys=True))
