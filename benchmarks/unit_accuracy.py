"""What it costs in accuracy to protect a person instead of a record, at the same ε.

    python benchmarks/unit_accuracy.py --quick
    python benchmarks/unit_accuracy.py --data FOLDER --cache FOLDER --json FILE

Campaigns by the command line with default settings, as in defaults.py, once for single records and once for units: skin
lesions by lesion (`lesions.csv`; one label for all images of a lesion) and chest X-rays by patient. Units are labelled
twice: as many units as records before, and so many that people see about as many images. FOLDER of --data holds
skinlesion_64 and chestxray_64 (Parquet); --quick takes the embedded digits, three of which make a writer.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import yaml
from _report import Report
from defaults import EPSILON, SKIN, campaign, dpal, mean, parser_of, table

FINDINGS = tuple(f"finding {number}" for number in range(1, 15))
SEEDS = (1, 2, 3)
# How many records one unit may have, where the ε of such a unit is stated for protection by record.
MOST = {"lesion": 6, "patient": 30, "writer": 3}


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One kind of protection, with its numbers of labels."""

    what: str
    document: dict[str, Any]
    labels: int
    unit: str = "record"
    words: str = ""
    metrics: tuple[str, ...] = ("accuracy", "balanced_accuracy")
    settings: Sequence[str] = field(default=())

    def full(self) -> dict[str, Any]:
        return {**self.document, "plan": {"target_epsilon": EPSILON, "labelling_budget": self.labels}}


def arms_of(
    what: str, document: dict[str, Any], labels: int, records: int, units: int, unit: dict[str, Any], **more: Any
) -> Iterator[Arm]:
    """Single records; as many units as records before; and units with about as many records."""
    yield Arm(what=what, document=document, labels=labels, **more)
    by_unit = {**document, "data": {**document["data"], "unit": unit}}
    name = unit["name"]
    for count, words in ((labels, "as many answers"), (round(labels * units / records), "as many images")):
        yield Arm(what=what, document=by_unit, labels=min(count, units), unit=name, words=words, **more)


def arms(options: argparse.Namespace) -> Iterator[Arm]:
    training = {} if options.cache is None else {"training": {"features_cache": str(options.cache)}}
    if options.quick or options.data is None:
        digits = {"data": {"source": "digits"}, "evaluation": {"source": "digits", "options": {"part": "test"}}}
        digits["evaluation"] |= {"is_public": True, "shares_no_unit": True}
        unit = {"function": "unit_accuracy:writer", "name": "writer", "records": 3}
        model = {"model": {"name": "small-cnn"}, "oracle": "simulated"}
        few = ("plan.epochs=2",)
        single, _, images = arms_of("digits", {**digits, **model}, 300, 1437, 479, unit, settings=few)
        yield from (single, images)
        return
    lesions = options.data / "skinlesion_64/lesions.csv"
    columns = {"image": "image", "id_column": "id", "size": 64, "channels": 3}
    pool, held_out = (
        table(options.data / f"skinlesion_64/{part}.parquet", columns, SKIN) for part in ("train", "test")
    )
    document = {"data": pool, "evaluation": {**held_out, "is_public": True}, "oracle": "simulated", **training}
    unit = {"file": str(lesions), "file_unit_column": "lesion", "name": "lesion", "records": 6, "one_label": True}
    yield from arms_of("skin lesions", document, 2500, 7980, 5976, unit)
    columns = {"image": "image", "id_column": "id", "size": 64, "channels": 1, "multi_label": True}
    pool, held_out = (
        table(file, columns, FINDINGS) for file in (options.data / "chestxray_64/train.parquet", options.strangers)
    )
    document = {"data": pool, "evaluation": {**held_out, "is_public": True}, "oracle": "simulated", **training}
    unit = {"pattern": "^([0-9]+)_", "name": "patient", "records": 4}
    # Each image gets answers of its own, so there are as many answers as images.
    single, _, images = arms_of("chest X-rays", document, 300, 600, options.patients, unit, metrics=("auc",))
    yield from (single, images)


def of_strangers(folder: Path, data: Path) -> Path:
    """The X-rays held out, without those of patients who are in the pool too."""
    known = {name.partition("_")[0] for name in _ids(data / "chestxray_64/train.parquet")}
    held_out = parquet.read_table(data / "chestxray_64/test.parquet")
    strangers = [name.partition("_")[0] not in known for name in held_out["id"].to_pylist()]
    parquet.write_table(held_out.filter(strangers), folder / "strangers.parquet")
    return folder / "strangers.parquet"


def _ids(file: Path) -> list[str]:
    return parquet.read_table(file, columns=["id"])["id"].to_pylist()


def writer(record_id: str) -> str:
    """Who wrote a digit, for --quick: three in a row."""
    return str(int(record_id.rpartition("-")[2]) // 3)


def epsilon_of_unit(document: dict[str, Any], records: int) -> str:
    """The ε that a unit with so many records has where single records are protected."""
    with tempfile.TemporaryDirectory() as place:
        config = Path(place, "c.yaml")
        config.write_text(yaml.safe_dump(document))
        dpal("init", Path(place, "c"), "--config", config)
        said = json.loads(dpal("epsilon", Path(place, "c"), "--records-per-person", records, "--json"))
    (row,) = said["plan"]
    return "none proven" if row["epsilon"] is None else f"{row['epsilon']:.1f}"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--patients", type=int, default=165, help="patients among the chest X-rays of the pool")
    options = parser.parse_args()
    if options.quick:
        options.seeds = [1]
    # Campaigns run in processes of their own, and import `writer` from here.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as place:
        if options.data is not None:
            options.strangers = of_strangers(Path(place), options.data)
        measure(options)


def measure(options: argparse.Namespace) -> None:
    report, runs = Report(name="Protecting a person instead of a record", packages=("torch",)), []
    for arm in arms(options):
        results = [campaign(arm.full(), "cut", seed, arm.settings) for seed in options.seeds]
        most = next((MOST[other.unit] for other in arms(options) if other.what == arm.what and other.unit in MOST), 1)
        several = epsilon_of_unit(arm.full(), most) if arm.unit == "record" and not options.quick else ""
        report.row(
            what=arm.what,
            protects=f"one {arm.unit}",
            labels=f"{arm.labels:,}{f' ({arm.words})' if arm.words else ''}",
            **{
                metric.replace("_", " "): mean([run[metric] for run in results], 1 if metric == "auc" else 100)
                for metric in arm.metrics
            },
            epsilon_of_a_whole_unit=f"{several} ({most} records)" if several else f"{EPSILON:g}",
            seconds=mean([run["seconds"] for run in results], 1),
        )
        print(report.rows[-1], flush=True)
        runs += [
            {"dataset": arm.what, "unit": arm.unit, "labels": arm.labels, "seed": seed, **run}
            for seed, run in zip(options.seeds, results, strict=True)
        ]
    report.finish(options.json, seeds=options.seeds, runs=runs)


if __name__ == "__main__":
    main()
