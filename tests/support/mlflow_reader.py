"""What an MLflow store in SQLite holds, read with nothing but sqlite3, and what of it should not be there."""

import json
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

PAGE = Path(__file__).parents[2] / "docs/mlflow.md"
# Parts of names that only private quantities have, and the names that are the plan's, so public.
PRIVATE_WORDS = (
    "loss", "grad", "batch", "norm", "seconds", "engine", "skipped", "cannot_tell", "labelled", "waiting", "corrected",
    "withdrawn", "resumed", "asked", "retired", "internal", "finite", "inbox", "last_change",
)  # fmt: skip
OF_THE_PLAN = {"batch_size", "expected_batch_size", "unlabelled"}
# So close that no two numbers are by chance.
_CLOSE = 1e-10


@dataclass(frozen=True)
class Run:
    """One run, with its files."""

    number: str
    status: str
    is_deleted: bool
    parameters: dict[str, str]
    metrics: dict[tuple[str, int], float]
    tags: dict[str, str]
    artifacts: dict[str, bytes]

    def names(self) -> dict[str, set[str]]:
        """By the titles of the tables in the document."""
        return {
            "Parameters": set(self.parameters),
            "Metrics": {name for name, _ in self.metrics},
            "Tags": set(self.tags),
            "Artifacts": set(self.artifacts),
        }


def runs_of(file: Path) -> list[Run]:
    """Every run of a store, in the order of their start."""
    with closing(sqlite3.connect(file)) as store:
        rows = store.execute(
            "SELECT run_uuid, status, lifecycle_stage, artifact_uri FROM runs ORDER BY start_time"
        ).fetchall()
        return [
            Run(
                number=number,
                status=status,
                is_deleted=stage != "active",
                parameters={row["key"]: row["value"] for row in _rows(store, "params", number)},
                metrics={(row["key"], row["step"]): row["value"] for row in _rows(store, "metrics", number)},
                tags={row["key"]: row["value"] for row in _rows(store, "tags", number)},
                artifacts=_files(Path(unquote(urlsplit(place).path))),
            )
            for number, status, stage, place in rows
        ]


def _rows(store: sqlite3.Connection, table: str, run: str) -> list[dict[str, Any]]:
    cursor = store.execute(f"SELECT * FROM {table} WHERE run_uuid = ?", (run,))  # noqa: S608 - the names above
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def _files(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def texts_of(file: Path) -> list[str]:
    """Every cell of every table, and every file that is no weights; of the weights, what their file says of itself."""
    with closing(sqlite3.connect(file)) as store:
        tables = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        queries = [f'SELECT * FROM "{name}"' for name in tables]  # noqa: S608 - from the database itself
        found = [str(cell) for query in queries for row in store.execute(query) for cell in row]
    for run in runs_of(file):
        for name, content in run.artifacts.items():
            start = 8 + int.from_bytes(content[:8], "little") if name.endswith(".safetensors") else None
            found.append(content[8 if start else 0 : start].decode("utf-8", errors="replace"))
    return found


def documented() -> dict[str, set[str]]:
    """The names that the document's tables have."""
    page = PAGE.read_text(encoding="utf-8")
    tables: dict[str, set[str]] = {}
    for title in ("Parameters", "Metrics", "Tags", "Artifacts"):
        rows = re.search(rf"\n{title}\b.*:\n\n((?:\|.*\n)+)", page)[1].splitlines()[2:]  # type: ignore[index]
        tables[title] = {name for row in rows for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])}
        assert tables[title] and all(len(row.split(" | ")[1]) > 5 for row in rows)
    return tables


def private_names(documents: Iterable[str]) -> set[str]:
    """Names in JSON documents that only a private quantity has."""
    found: set[str] = set()

    def look(value: Any) -> None:
        if isinstance(value, dict):
            found.update(name for name in value if any(word in name.lower() for word in PRIVATE_WORDS))
            for inner in value.values():
                look(inner)
        elif isinstance(value, list):
            for inner in value:
                look(inner)

    for document in documents:
        look(json.loads(document))
    return found - OF_THE_PLAN


def numbers_among(texts: Iterable[str], forbidden: Iterable[float]) -> set[float]:
    """The forbidden numbers, none of them whole, that the texts have."""
    written = {
        float(number)
        for text in texts
        # A hash is no number.
        for number in re.findall(r"(?<![\w.])-?\d+\.\d+(?:[eE][-+]?\d+)?(?![\w.])", text)
    }
    return {number for number in forbidden if any(abs(number - other) <= _CLOSE * abs(number) for other in written)}
