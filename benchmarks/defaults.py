"""What a campaign with default settings reaches, through the command line alone: private cut against random labels.

    python benchmarks/defaults.py --quick
    python benchmarks/defaults.py --data FOLDER --cifar10 FOLDER --cache FOLDER --json FILE

Every campaign is `dpal init` and `dpal run` on a configuration that names data, a public held-out set, ε = 8 and the
number of labels, and nothing else. Random labels have the same sizes and steps, all drawn at once. FOLDER of --data
holds bloodcell_128, skinlesion_64 (Parquet) and text (SST-2); --quick takes the embedded digits alone.
"""

import argparse
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from _report import Report

EPSILON = 8.0
SEEDS = (1, 2, 3, 4, 5)
ARMS = {"cut": [], "random": ["plan.selection=random", "plan.planner=no-al"]}
BLOOD = ["basophil", "eosinophil", "erythroblast", "ig", "lymphocyte", "monocyte", "neutrophil", "platelet"]
TEXTS = ["negative", "positive"]
SKIN = ["akiec", "bcc", "bkl", "df", "mel", "nv", "vasc"]
# Accuracy, and balanced accuracy where it counts, that the cut should reach.
TARGETS = {
    "CIFAR-10, 2,500 labels": (0.85, None),
    "blood cells, 2,500 labels": (0.92, None),
    "skin lesions, 2,500 labels": (0.72, 0.35),
    "SST-2, 2,000 labels": (0.78, None),
}


def table(file: Path, content: dict[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    return {"source": "table", "options": {"file": str(file), "label": "label", "classes": list(classes), **content}}


def datasets(options: argparse.Namespace, epsilon: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Titles and configurations of the datasets that are asked for."""
    for title, labels, pool, held_out in _sources(options):
        if re.search(options.only, title):
            document = {
                "data": pool,
                "evaluation": {**held_out, "is_public": True},
                "plan": {"target_epsilon": epsilon, "labelling_budget": labels},
                "oracle": "simulated",
            }
            if options.cache is not None:
                document["training"] = {"features_cache": str(options.cache)}
            yield title, document


def _sources(options: argparse.Namespace) -> Iterator[tuple[str, int, dict[str, Any], dict[str, Any]]]:
    """Titles, numbers of labels, pools and held-out sets."""
    yield "digits, 300 labels", 300, {"source": "digits"}, {"source": "digits", "options": {"part": "test"}}
    if options.data is not None and not options.quick:
        blood, skin = ({"image": "image", "id_column": "id", "size": side, "channels": 3} for side in (128, 64))
        cells = [table(options.data / f"bloodcell_128/{part}.parquet", blood, BLOOD) for part in ("train", "test")]
        for labels in (2500, 600):
            yield f"blood cells, {labels:,} labels", labels, *cells
        lesions = [table(options.data / f"skinlesion_64/{part}.parquet", skin, SKIN) for part in ("train", "test")]
        yield "skin lesions, 2,500 labels", 2500, *lesions
        files = {"sst2_train.tsv": "sentence", "sst2_dev.tsv": "content"}
        texts = [table(options.data / "text" / file, {"text": text}, TEXTS) for file, text in files.items()]
        yield "SST-2, 2,000 labels", 2000, *texts
    if options.cifar10 is not None and not options.quick:
        folder = str(options.cifar10)
        parts = [{"source": "cifar10", "options": {"folder": folder, "part": part}} for part in ("train", "test")]
        yield "CIFAR-10, 2,500 labels", 2500, *parts


def dpal(*words: object, codes: tuple[int, ...] = (0,)) -> str:
    command = [sys.executable, "-c", "from dpal.cli import run; run()", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (our own command)
    if done.returncode not in codes:
        sys.exit(f"dpal {' '.join(map(str, words))} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def campaign(document: dict[str, Any], arm: str, seed: int, settings: Sequence[str]) -> dict[str, Any]:
    """One campaign: its metrics after the last phase, its model, and the seconds of `dpal run`."""
    with tempfile.TemporaryDirectory() as place:
        folder, config = Path(place, "campaign"), Path(place, "campaign.yaml")
        config.write_text(yaml.safe_dump(document))
        changes = [word for setting in (*ARMS[arm], *settings) for word in ("--set", setting)]
        dpal("init", folder, "--config", config, "--seed", seed, "--not-private", *changes)
        started = time.monotonic()
        dpal("run", folder)
        seconds = time.monotonic() - started
        status = json.loads(dpal("status", folder, "--json"))
        model = yaml.safe_load((folder / "campaign.yaml").read_text())["model"]
    return {**status["metrics"][-1], "seconds": seconds, "model": model["options"].get("encoder", model["name"])}


def mean(values: Sequence[float], scale: float = 100) -> str:
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{scale * statistics.fmean(values):.2f} ± {scale * error:.2f}"


def measured(report: Report, title: str, document: dict[str, Any], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Both arms with every seed; a row for each, and the difference by seed."""
    epsilon = document["plan"]["target_epsilon"]
    runs = {arm: [campaign(document, arm, seed, options.set) for seed in options.seeds] for arm in ARMS}
    for arm, results in runs.items():
        report.row(
            what=title,
            epsilon=epsilon,
            labels=arm,
            model=results[0]["model"],
            accuracy=mean([run["accuracy"] for run in results]),
            balanced_accuracy=mean([run["balanced_accuracy"] for run in results]),
            seconds=mean([run["seconds"] for run in results], 1),
        )
        print(report.rows[-1], flush=True)
    pairs = zip(runs["cut"], runs["random"], strict=True)
    differences = [100 * (cut["accuracy"] - random["accuracy"]) for cut, random in pairs]
    pairs = zip(runs["cut"], runs["random"], strict=True)
    balanced = [100 * (cut["balanced_accuracy"] - random["balanced_accuracy"]) for cut, random in pairs]
    report.row(
        what=title,
        epsilon=epsilon,
        labels="cut − random",
        model="",
        accuracy=mean(differences, 1),
        balanced_accuracy=mean(balanced, 1),
        seconds="",
    )
    print(report.rows[-1], flush=True)
    if not options.set and epsilon == EPSILON:
        claim(report, title, runs["cut"], differences)
    return [
        {"dataset": title, "epsilon": epsilon, "labels": arm, "seed": seed, **run}
        for arm in ARMS
        for seed, run in zip(options.seeds, runs[arm], strict=True)
    ]


def claim(report: Report, title: str, cut: Sequence[dict[str, Any]], differences: Sequence[float]) -> None:
    least, least_balanced = TARGETS.get(title, (None, None))
    for name, target in (("accuracy", least), ("balanced_accuracy", least_balanced)):
        if target is not None:
            reached = statistics.fmean(run[name] for run in cut)
            words = f"{title}: {name.replace('_', ' ')} of the cut with defaults"
            report.claim(words, round(reached, 4), f"at least {target}", reached >= target)
    if len(differences) > 1:
        error = statistics.stdev(differences) / math.sqrt(len(differences))
        errors = statistics.fmean(differences) / max(error, 1e-9)
        report.claim(f"{title}: cut − random, in standard errors", round(errors, 2), "more than 2", errors > 2)


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """The options that say which datasets there are."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="digits only: ends within 50 s on two cores")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="blood cells, skin lesions and texts")
    parser.add_argument("--cifar10", type=Path, metavar="FOLDER", help="the official binary batches")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="share features between the campaigns")
    parser.add_argument("--only", default="", metavar="REGEX", help="only datasets whose title matches")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write claims, rows, device and versions")
    return parser


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[EPSILON])
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="not the defaults: further settings")
    options = parser.parse_args()
    if options.quick:
        options.seeds = [1]
    report, runs = Report(name="Campaigns with default settings", packages=("torch",)), []
    for epsilon in options.epsilon:
        for title, document in datasets(options, epsilon):
            runs += measured(report, title, document, options)
    report.finish(options.json, settings=options.set, seeds=options.seeds, runs=runs)


if __name__ == "__main__":
    main()
