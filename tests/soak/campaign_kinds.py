"""The kinds of campaigns that faults happen to: small ones, each with a real configuration and real files of data."""

import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from commands import in_this_process
from observer import Facts, read_facts, released

RECORDS, HELD_OUT, FEATURES = 24, 40, 4
CLASSES = ("no", "yes")
SEED = 7


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of campaign: its promise, how it selects, who labels, and what else it has."""

    name: str
    selections: str = "released"
    selection: str = "random"
    # simulated; source: a label source that may die; files: tables; page: the labelling page.
    labels: str = "simulated"
    seeded: bool = True
    units: bool = False
    held_out: bool = False
    accountant: str = "rdp"

    def config(self, data: Path) -> dict[str, object]:
        """Its configuration, as a person writes it."""
        oracle = {"simulated": "simulated", "source": "toy_parts:LabelSource"}.get(self.labels, "files")
        options = {"file": "pool.npy", "labels": "labels.npy", "ids": "ids.npy"}
        held = {"file": "held-out.npy", "labels": "held-out-labels.npy", "ids": "held-out-ids.npy"}
        sizes = {"initial_size": 8, "query_sizes": [5, 4], "batch_size": 4}
        if self.units:
            sizes = {"initial_size": 4, "query_sizes": [3, 2], "batch_size": 2}
        unit = {"unit": {"pattern": "^u[0-9]+", "name": "patient", "records": 2}} if self.units else {}
        document: dict[str, object] = {
            "data": {"source": "numpy", "options": _placed(options, data), "ids_are_free_of_content": True, **unit},
            "plan": {
                "target_epsilon": 8,
                "target_delta": 1e-3,
                **sizes,
                "epochs": 1,
                "accountant": self.accountant,
                "planner": "step-amplification",
                "selections": self.selections,
                "selection": self.selection,
            },
            "model": {"name": "toy_parts:linear"},
            "oracle": oracle,
        }
        if self.held_out:
            source = {"source": "numpy", "options": _placed(held, data), "is_public": True}
            document["evaluation"] = source | ({"shares_no_unit": True} if self.units else {})
        if self.seeded:
            document |= {"seed": SEED, "not_private": True}
        return document


def _placed(options: dict[str, str], data: Path) -> dict[str, object]:
    return {name: str(data / file) for name, file in options.items()} | {"classes": list(CLASSES)}


KINDS = (
    Kind(name="released, random"),
    Kind(name="released, random, held-out set", held_out=True, seeded=False),
    Kind(name="released, threshold", selection="threshold", labels="source"),
    Kind(name="released, threshold, files", selection="threshold", labels="files", seeded=False),
    Kind(name="released, laplace, page", selection="laplace", labels="page"),
    Kind(name="released, exponential", selection="exponential"),
    Kind(name="inside, cut", selections="inside", selection="cut", labels="source"),
    Kind(name="inside, cut, sealed", selections="inside", selection="cut", labels="files", seeded=False),
    Kind(name="inside, cut, page", selections="inside", selection="cut", labels="page", held_out=True),
    Kind(name="inside, random, files", selections="inside", labels="files"),
    Kind(name="patients, released", units=True, labels="files"),
    Kind(name="patients, inside", units=True, selections="inside", selection="cut", labels="source"),
)


def write_data(folder: Path) -> None:
    """Two pools, one of records and one of patients with two records each, and a held-out set."""
    chance = np.random.default_rng(3)
    for name, records in (("", RECORDS), ("patients-", RECORDS)):
        place = folder / f"{name}data"
        place.mkdir()
        for part, count in (("pool", records), ("held-out", HELD_OUT)):
            values = chance.normal(size=(count, FEATURES)).astype(np.float32)
            np.save(place / f"{part}.npy", values)
            labels = place / ("labels.npy" if part == "pool" else "held-out-labels.npy")
            np.save(labels, (values[:, 0] > 0).astype(np.int64))
            letter = "r" if part == "pool" else "h"
            ids = [f"{letter}{number:02d}" for number in range(count)]
            if name and part == "pool":
                ids = [f"u{number // 2:02d}-{number % 2}" for number in range(count)]
            np.save(place / ("ids.npy" if part == "pool" else "held-out-ids.npy"), np.array(ids))


def data_of(kind: Kind, base: Path) -> Path:
    return base / ("patients-data" if kind.units else "data")


def truth_of(kind: Kind, base: Path) -> dict[str, int]:
    """Every record's label."""
    data = data_of(kind, base)
    return dict(zip(np.load(data / "ids.npy").tolist(), np.load(data / "labels.npy").tolist(), strict=True))


@dataclass(frozen=True)
class Template:
    """A campaign that is created and not run, and the same one run to its end by nobody disturbed."""

    kind: Kind
    config: Path
    folder: Path
    truth: dict[str, int]
    facts: Facts
    released: tuple[list[Any], list[Any]]
    # The files that it leaves.
    files: frozenset[str]


@cache
def template(kind: Kind, base: Path) -> Template:
    """Made when it is first needed."""
    place = base / "templates" / kind.name.replace(", ", "-").replace(" ", "-")
    place.mkdir(parents=True)
    config, folder, finished = place / "dpal.yaml", place / "campaign", place / "finished"
    # Whoever labels, the labels are the same.
    truth = kind.config(data_of(kind, base))
    config.write_text(yaml.safe_dump(truth))
    in_this_process(["init", folder, "--config", config])
    simulated = place / "simulated.yaml"
    simulated.write_text(yaml.safe_dump(truth | {"oracle": "simulated"}))
    in_this_process(["init", finished, "--config", simulated])
    in_this_process(["run", finished, "--go-on"])
    return Template(
        kind=kind,
        config=config,
        folder=folder,
        truth=truth_of(kind, base),
        facts=read_facts(finished),
        released=released(finished),
        files=files_in(finished),
    )


def copy_of(given: Template, place: Path) -> None:
    """A campaign that is created and not run."""
    shutil.copytree(given.folder, place)


def files_in(folder: Path) -> frozenset[str]:
    return frozenset(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
