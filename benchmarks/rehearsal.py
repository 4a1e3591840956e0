"""Forecasts of `dpal rehearse` next to what campaigns with the same configuration came to.

    python benchmarks/rehearsal.py --quick
    python benchmarks/rehearsal.py --data FOLDER --cifar10 FOLDER --against benchmarks/results/defaults-cpu2.json

A rehearsal sees half of the public held-out set and the size of the pool. The results are those of defaults.py, whose
file is given by --against; they were measured on the whole held-out set, which the other half of it is a part of.
With --epsilon 1 2 4 8 16, one forecast for each ε.
"""

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml
from _report import Report
from defaults import EPSILON, datasets, dpal, mean, parser_of

AT_CHANCE = 6


def rehearsed(document: dict[str, Any], epsilons: list[float]) -> tuple[list[dict[str, Any]], float]:
    """The forecasts of one rehearsal, with random labels next to the cut, and the seconds it took."""
    with tempfile.TemporaryDirectory() as place:
        config = Path(place, "campaign.yaml")
        config.write_text(yaml.safe_dump(document))
        asked = ",".join(f"{epsilon:g}" for epsilon in epsilons)
        started = time.monotonic()
        words = ("rehearse", config, "--json", "--with-random", "--epsilons", asked)
        result = json.loads(dpal(*words, codes=(0, AT_CHANCE)))
    return result["forecasts"], time.monotonic() - started


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--against", type=Path, metavar="FILE", help="results of defaults.py")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[EPSILON])
    options = parser.parse_args()
    known = json.loads(options.against.read_text())["runs"] if options.against is not None else []
    report, forecasts = Report(name="Rehearsals against reality", packages=("torch",)), []
    for title, document in datasets(options, EPSILON):
        found, seconds = rehearsed(document, options.epsilon)
        for forecast in found:
            accuracies, epsilon, labels = (
                forecast["phases"][-1]["accuracy"],
                forecast["target_epsilon"],
                forecast["selection"],
            )
            forecasts.append({"dataset": title, "epsilon": epsilon, "labels": labels, "accuracy": accuracies})
            key = (title, epsilon, labels)
            real = [run["accuracy"] for run in known if (run["dataset"], run["epsilon"], run["labels"]) == key]
            report.row(
                what=title,
                epsilon=epsilon,
                labels=labels,
                forecast=mean(accuracies),
                result=mean(real) if real else "",
                seconds=f"{seconds / len(found):.0f}",
            )
            print(report.rows[-1], flush=True)
            if real:
                points = 100 * abs(statistics.fmean(accuracies) - statistics.fmean(real))
                words = f"{title}, {labels}: forecast against result, in points"
                report.claim(words, round(points, 2), "at most 5", points <= 5)
    report.finish(options.json, forecasts=forecasts)


if __name__ == "__main__":
    main()
