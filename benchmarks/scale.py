"""Selections from pools in Parquet: time and the driver's memory by size, Ray workers that are killed, and broken S3.

Every run is a process of its own, so that its memory is its own. The same ids must come out everywhere. Runs with Ray
need the extra ray, and runs on S3 moto's server; what is missing is left out of the table, and said.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from _report import Report, parser

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests" / "support"))

from large_pools import COLUMNS, chosen_in_memory, job_for, selections, write_pool  # noqa: E402
from s3_server import KEYS, breaking_proxy, s3_server, upload  # noqa: E402

from dpal.campaign.block_worker import ScoredBlock  # noqa: E402
from dpal.campaign.large_selection import choose_from_blocks  # noqa: E402
from dpal.data.parquet import ParquetTable  # noqa: E402
from dpal.randomness import SealedRandomness  # noqa: E402

KEY = bytes(range(32))
QUICK, FULL = (100_000, 400_000), (1_000_000, 3_000_000, 10_000_000)
ROW_GROUP = 100_000
WORKERS = 2
LINEAR = 1.5


def child(task: Mapping[str, Any]) -> None:
    """One selection; prints what came out."""
    started = time.perf_counter()
    if task["workers"] is None:
        selection = selections(task["rows"], task["query_size"])[task["kind"]]
        chosen = chosen_in_memory(Path(task["uri"]), selection, KEY)
    else:
        table = ParquetTable.open(task["uri"], COLUMNS)
        selection = selections(len(table), task["query_size"])[task["kind"]]
        randomness = SealedRandomness(KEY)
        job = job_for(table, selection, randomness)
        if task["kill"]:
            kill_one_worker()
        with tempfile.TemporaryDirectory(dir=task["scratch"]) as folder:
            scratch = Path(folder) / "scores"
            result = choose_from_blocks(job, randomness=randomness, scratch=scratch, workers=task["workers"])
        chosen = result.chosen
    ids = [sorted(chosen.to_label.tolist()), sorted(chosen.retired.tolist()), chosen.threshold]
    found = {
        "seconds": time.perf_counter() - started,
        "gibibytes": peak_gibibytes(),
        "asked": len(chosen.to_label),
        "ids": hashlib.sha256(json.dumps(ids).encode()).hexdigest(),
        "killed": len(KILLED),
    }
    print(json.dumps(found))


KILLED: list[int] = []


def kill_one_worker() -> None:
    """From now on: when the first block's scores have come, its worker is killed."""
    add_to = ScoredBlock.add_to

    def and_kill(block: ScoredBlock, counts: Any) -> None:
        add_to(block, counts)
        if not KILLED and block.process != os.getpid():
            KILLED.append(block.process)
            os.kill(block.process, signal.SIGKILL)

    ScoredBlock.add_to = and_kill  # pyright: ignore[reportAttributeAccessIssue]


def peak_gibibytes() -> float:
    """The most memory this process has held, without its workers."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 2**20 for line in status if line.startswith("VmHWM:"))


def run(scratch: Path, uri: Path | str, rows: int, kind: str, workers: int | None, **options: Any) -> dict[str, Any]:
    task = {"uri": str(uri), "rows": rows, "kind": kind, "workers": workers, "kill": False, "query_size": 1000}
    given = json.dumps({**task, "scratch": str(scratch), **options})
    done = subprocess.run(  # noqa: S603 (this very file)
        [sys.executable, __file__, "--child", given], check=True, capture_output=True, text=True, env=os.environ | KEYS
    )
    # Ray prints lines of its own.
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))


def measure(
    report: Report, scratch: Path, sizes: tuple[int, ...], largest: int | None, *, has_ray: bool, has_s3: bool
) -> None:
    quick = sizes == QUICK
    by_size: dict[int, float] = {}
    if largest is not None:
        folder = write_pool(scratch / "largest", largest, files=16, row_group=ROW_GROUP)
        found = run(scratch, folder, largest, "cut", 0)
        row(report, "one process, in blocks", "cut", largest, found)
        by_size[largest] = found["seconds"]
        shutil.rmtree(folder)
    # One process, by size: the cut. Then everything else at the largest size.
    for rows in sizes:
        folder = write_pool(scratch / f"pool-{rows}", rows, files=4, row_group=ROW_GROUP)
        found = run(scratch, folder, rows, "cut", 0)
        row(report, "one process, in blocks", "cut", rows, found)
        by_size[rows] = found["seconds"]
    memory = max(float(str(each["driver_gibibytes"])) for each in report.rows)
    same: list[bool] = []
    killed = 0
    for kind in ("cut",) if quick else ("cut", "threshold"):
        plain = run(scratch, folder, rows, kind, None)
        row(report, "everything in memory", kind, rows, plain)
        wanted = plain["ids"]
        if kind != "cut":
            found = run(scratch, folder, rows, kind, 0)
            row(report, "one process, in blocks", kind, rows, found)
        same.append(found["ids"] == wanted)
        if not has_ray:
            continue
        for kill in (True,) if quick else (False, True):
            what = f"Ray, {WORKERS} workers" + (", one killed in the middle" if kill else "")
            found = run(scratch, folder, rows, kind, WORKERS, kill=kill)
            row(report, what, kind, rows, found)
            same.append(found["ids"] == wanted)
            memory, killed = max(memory, found["gibibytes"]), killed + found["killed"]
    report.claim("runs whose ids equal those of the plain path", sum(same), f"all {len(same)}", all(same))
    if has_ray:
        report.claim("workers killed in the middle", killed, "at least 1", killed > 0)
    rate = {rows: seconds / rows for rows, seconds in by_size.items()}
    smallest, most = min(rate), max(rate)
    growth = rate[most] / rate[smallest]
    report.claim(f"time per row, {most:,} rows over {smallest:,}", growth, f"under {LINEAR}", growth < LINEAR)
    report.claim("GiB of the driver's memory, largest run", memory, "under 4", memory < 4)
    if has_s3:
        s3(report, scratch, sizes[0], by_size)


def s3(report: Report, scratch: Path, rows: int, by_size: dict[int, float]) -> None:
    folder = scratch / f"pool-{rows}"
    wanted = run(scratch, folder, rows, "cut", 0)["ids"]
    with s3_server() as server, breaking_proxy(server, every=3) as (proxy, broken):
        place = upload(folder, server, "pool/rows")
        found = run(scratch, place.replace(server.replace(":", "%3A"), proxy.replace(":", "%3A")), rows, "cut", 0)
        row(report, f"S3, {len(broken)} connections broken", "cut", rows, found)
    report.claim("connections to S3 broken", len(broken), "at least 3", len(broken) >= 3)
    report.claim("same ids from S3", float(found["ids"] == wanted), "1", found["ids"] == wanted)


def row(report: Report, what: str, kind: str, rows: int, found: Mapping[str, Any]) -> None:
    report.row(
        what=what,
        kind=kind,
        rows=rows,
        seconds=found["seconds"],
        million_rows_per_second=rows / found["seconds"] / 1e6,
        driver_gibibytes=found["gibibytes"],
        asked=found["asked"],
    )


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--child", metavar="TASK", help="used by the benchmark itself")
    command.add_argument("--rows", type=int, nargs="+", metavar="ROWS", help="other sizes, rising")
    command.add_argument("--largest", type=int, metavar="ROWS", help="also this size, only in blocks")
    command.add_argument("--scratch", type=Path, metavar="FOLDER", help="where the pools are written")
    options = command.parse_args()
    if options.child:
        child(json.loads(options.child))
        return
    report = Report(name="scale", packages=("torch", "pyarrow"))
    has_ray, has_s3 = find_spec("ray") is not None, find_spec("moto") is not None
    for has, name in ((has_ray, "ray"), (has_s3, "moto")):
        if not has:
            print(f"{name} is not installed: what needs it is left out")
    sizes = tuple(options.rows) if options.rows else QUICK if options.quick else FULL
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        measure(report, Path(folder), sizes, options.largest, has_ray=has_ray, has_s3=has_s3)
    report.finish(options.json, workers=WORKERS)


if __name__ == "__main__":
    main()
