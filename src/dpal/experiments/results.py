"""Results: one small JSON file per run, and the folder with these files."""

import importlib.metadata
import json
import platform
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any, cast

from dpal.campaign.files import write_text
from dpal.errors import BadData
from dpal.experiments.runs import Row, Run
from dpal.experiments.tasks import TASKS

SCHEMA_VERSION = 1
FOLDER = Path("experiments") / "results"
_PACKAGES = ("dpal", "torch", "numpy", "scipy")


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that compute."""
    installed = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            if name == "dpal":
                from dpal import __version__

                installed[name] = __version__
    return installed


@dataclass(frozen=True, slots=True)
class Results:
    """The files of results under a folder, by scale."""

    folder: Path

    def path(self, run: Run) -> Path:
        return self.folder / run.scale / f"{run.name}.json"

    def read(self, run: Run) -> dict[str, Any] | None:
        """The result of a run, or None. A result of other settings is refused: it must not pass for this run's."""
        path = self.path(run)
        if not path.is_file():
            return None
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            run_hash, version = document["run_hash"], document["schema_version"]
        except (ValueError, KeyError, TypeError) as error:
            raise BadData(
                f"{path} is not the result of an experiment ({type(error).__name__}). Move it away."
            ) from error
        if version != SCHEMA_VERSION:
            raise BadData(f"{path} has version {version!r}; this dpal reads {SCHEMA_VERSION}. Move it away.")
        if run_hash != run.hash():
            raise BadData(
                f"{path} was made with different settings than {run.name} has now. Move it away to run this again, or "
                "use the version of dpal that made it."
            )
        return cast("dict[str, Any]", document)

    def write(self, run: Run, measured: dict[str, Any]) -> Path:
        """One file, whole or not at all."""
        path = self.path(run)
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {
            "schema_version": SCHEMA_VERSION,
            "run": run.description(),
            "run_hash": run.hash(),
            "nothing_is_private": "seeded, so that it repeats",
            "versions": versions(),
            **measured,
        }
        write_text(path, json.dumps(_rounded(document), indent=1, ensure_ascii=False) + "\n")
        return path


def _rounded(value: Any) -> Any:
    """Seven digits: more than any measurement here deserves."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        # The hash is taken of the description, so that stays as it is.
        return {key: item if key == "run" else _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A mean over seeds, in percent."""

    mean: float
    deviation: float | None
    seeds: int

    def __str__(self) -> str:
        spread = "" if self.deviation is None else f" ± {self.deviation:.2f}"
        return f"{self.mean:.2f}{spread} ({self.seeds})"


def figure(documents: list[dict[str, Any]], metric: str, kind: str) -> Figure | None:
    """The metric after the last phase, of the weights or of their average."""
    values = [100 * document["phases"][-1][kind][metric] for document in documents if document.get("phases")]
    if not values:
        return None
    return Figure(mean=mean(values), deviation=stdev(values) if len(values) > 1 else None, seeds=len(values))


def finished(results: Results, row: Row, *, scale: str, seeds: tuple[int, ...]) -> list[dict[str, Any]]:
    """The results that exist, in the order of seeds."""
    documents = (results.read(Run(row=row, scale=scale, seed=seed)) for seed in seeds)
    return [document for document in documents if document is not None]


def metric_of(row: Row, documents: list[dict[str, Any]]) -> str:
    """The task's metric, or accuracy where a stand-in for the task does not have it."""
    wanted = TASKS[row.task].metric
    known = documents[0]["phases"][-1]["weights"] if documents and documents[0].get("phases") else {}
    return wanted if wanted in known or not known else "accuracy"
