"""Forecasts of `dpal rehearse` next to what campaigns with the same configuration came to.

    python benchmarks/rehearsal.py --quick
    python benchmarks/rehearsal.py --data FOLDER --cifar10 FOLDER --against benchmarks/results/defaults-cpu2.json

A rehearsal sees half of the public held-out set and the size of the pool. The results are those of defaults.py, whose
file is given by --against; they were measured on the whole held-out set, which the other half of it is a part of.
"""

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml
from _report import Report
from defaults import ARMS, EPSILON, datasets, dpal, mean, parser_of

AT_CHANCE = 6


def forecast(document: dict[str, Any], arm: str) -> tuple[tuple[float, ...], float]:
    """The accuracies of a rehearsal's runs after the last phase, and the seconds it took."""
    with tempfile.TemporaryDirectory() as place:
        config = Path(place, "campaign.yaml")
        config.write_text(yaml.safe_dump(document))
        changes = [word for setting in ARMS[arm] for word in ("--set", setting)]
        started = time.monotonic()
        result = json.loads(dpal("rehearse", config, "--json", *changes, codes=(0, AT_CHANCE)))
    return tuple(result["forecasts"][0]["phases"][-1]["accuracy"]), time.monotonic() - started


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--against", type=Path, metavar="FILE", help="results of defaults.py")
    options = parser.parse_args()
    known = json.loads(options.against.read_text())["runs"] if options.against is not None else []
    report = Report(name="Rehearsals against reality, ε = 8", packages=("torch",))
    for title, document in datasets(options, EPSILON):
        for arm in ARMS:
            accuracies, seconds = forecast(document, arm)
            key = (title, EPSILON, arm)
            real = [run["accuracy"] for run in known if (run["dataset"], run["epsilon"], run["labels"]) == key]
            report.row(
                what=title,
                labels=arm,
                forecast=mean(accuracies),
                result=mean(real) if real else "",
                seconds=f"{seconds:.0f}",
            )
            print(report.rows[-1], flush=True)
            if real:
                points = 100 * abs(statistics.fmean(accuracies) - statistics.fmean(real))
                words = f"{title}, {arm}: forecast against result, in points"
                report.claim(words, round(points, 2), "at most 5", points <= 5)
    report.finish(options.json)


if __name__ == "__main__":
    main()
