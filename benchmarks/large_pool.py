"""Seconds and memory of one threshold selection among 100 million scores in a memory map, in a process of its own."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _report import Report, arguments

from dpal.randomness import SecureRandomness
from dpal.selection import ThresholdSelection

_PART = 1_000_000


def write_scores(path: Path, records: int) -> None:
    scores = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(records,))
    rng = np.random.default_rng(0)
    for start in range(0, records, _PART):
        scores[start : start + _PART] = rng.beta(2, 5, _PART)
    scores.flush()


def select_from(path: str) -> None:
    scores = np.load(path, mmap_mode="r")
    selection = ThresholdSelection.of(query_size=len(scores) // 100, unlabelled=len(scores), choice_epsilon=2.3)
    start = time.perf_counter()
    chosen = selection.choose(scores, highest=1.0, randomness=SecureRandomness())
    seconds = time.perf_counter() - start
    print(seconds, peak_gibibytes(), len(chosen.to_label))


def peak_gibibytes() -> float:
    """The most memory this program has held. (`ru_maxrss` would include the process that started it.)"""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 2**20 for line in status if line.startswith("VmHWM:"))


def main() -> None:
    if sys.argv[1:2] == ["--select-from"]:
        select_from(sys.argv[2])
        return
    options = arguments(__doc__)
    records = 10_000_000 if options.quick else 100_000_000
    report = Report(name="large_pool", packages=())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.npy"
        write_scores(path, records)
        for run in (1, 2, 3):
            done = subprocess.run(  # noqa: S603 (this very file)
                [sys.executable, __file__, "--select-from", str(path)], check=True, capture_output=True, text=True
            )
            seconds, gibibytes, selected = (float(part) for part in done.stdout.split())
            report.row(what=f"run {run}", records=records, seconds=seconds, gibibytes=gibibytes, selected=selected)
    slowest = max(float(str(row["seconds"])) for row in report.rows)
    largest = max(float(str(row["gibibytes"])) for row in report.rows)
    limit = 30 * records / 100_000_000
    report.claim(f"seconds for {records:,} scores, slowest run", slowest, f"under {limit:g}", slowest < limit)
    report.claim("GiB of memory, largest run", largest, "under 1", largest < 1)
    report.finish(options.json)


if __name__ == "__main__":
    main()
