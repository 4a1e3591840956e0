"""Random faults over whole campaigns, as many as wanted: `make soak`, or `python tests/soak/soak.py --seed 123`.

Every story is drawn from its own seed, which is printed if something is wrong. Results are lines of JSON in a file;
started again with the same file, it goes on after the stories that are there.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

_SETTINGS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
_SETTINGS |= {"COLUMNS": "400", "PYTHONHASHSEED": "0", "NO_COLOR": "1"}
# Memory in large pages: a fork then takes 3 ms instead of 20.
_SETTINGS |= {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "PYTHONMALLOC": "malloc"}
if __name__ == "__main__" and not _SETTINGS.items() <= os.environ.items():
    # They are read when a program begins.
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **_SETTINGS})  # noqa: S606
sys.path.insert(0, str(Path(__file__).parent))
os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])

import summary  # noqa: E402 (torch counts its threads when it is imported)
import torch  # noqa: E402
from planted import PLANTED  # noqa: E402
from story import tell  # noqa: E402
from warming import warm  # noqa: E402
from workspace import workspace  # noqa: E402


def main() -> int:
    words = _words()
    words.results.parent.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    began = time.monotonic()
    base = Path(tempfile.mkdtemp(prefix="dpal-soak-"))
    base.chmod(0o755)
    try:
        warm(base)
        print(f"ready after {time.monotonic() - began:.0f} s; results: {words.results}", flush=True)
        if words.seed is not None:
            return _one(words.seed, base)
        if words.planted:
            return _planted(base, words.workers)
        return _many(words, base, began)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=10_000, help="how many faults, over all stories of the file")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--first", type=int, default=1, help="the first story's seed")
    parser.add_argument("--seed", type=int, help="one story alone, told in full")
    parser.add_argument("--planted", action="store_true", help="break dpal on purpose, and see each bug found")
    parser.add_argument("--results", type=Path, default=Path("build/soak.jsonl"), help="resumed if it is there")
    parser.add_argument("--json", type=Path, help="write the summary there")
    return parser.parse_args()


def _one(seed: int, base: Path) -> int:
    """One story in full."""
    place = base / "worker"
    with workspace(place / "disk") as disk:
        told = tell(seed, base, disk, place)
        print(f"story {seed}: {told.kind}", *told.log, sep="\n  ")
        if told.violation is not None:
            kept = Path("build") / f"soak-{seed}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(disk.folder, kept)
            print(f"VIOLATION: {told.violation}\nThe campaign is in {kept}.")
        else:
            print(f"all holds; {len(told.faults)} faults")
    return int(told.violation is not None)


def _planted(base: Path, workers: int) -> int:
    """Each planted bug must be found, within the number of faults that is stated for it."""
    with ThreadPoolExecutor(workers) as several:
        codes = list(several.map(partial(_find, base), PLANTED))
    return int(any(codes))


def _find(base: Path, plant: Callable[[], None]) -> int:
    """Plant a bug in a process of its own, and tell stories there until one finds it."""
    context = multiprocessing.get_context("fork")
    found = context.Value("b", 0)
    worker = context.Process(target=_until_found, args=(base, plant, found))
    worker.start()
    worker.join()
    if worker.exitcode:
        print(f"its worker died (exit code {worker.exitcode})", flush=True)
    return int(not found.value)


def _until_found(base: Path, plant: Callable[[], None], found: Any) -> None:
    plant()
    seed, faults, name, place = 0, 0, plant.__name__.replace("_", " "), base / plant.__name__
    with workspace(place / "disk") as disk:
        while faults < PLANTED[plant]:
            seed += 1
            story = tell(seed, base, disk, place)
            faults += len(story.faults)
            if story.violation is not None:
                said = story.violation
                print(f"{name}: found within {faults} of {PLANTED[plant]} faults (seed {seed}): {said}", flush=True)
                found.value = 1
                return
    print(f"{name}: NOT FOUND within {faults} faults", flush=True)


def _many(words: argparse.Namespace, base: Path, began: float) -> int:
    known = list(summary.read(words.results))
    if known:
        print(f"going on: {sum(len(story['faults']) for story in known):,} faults are there already")
    told = {story["seed"] for story in known}
    context = multiprocessing.get_context("fork")
    count = context.Value("q", sum(len(story["faults"]) for story in known))
    workers = [
        context.Process(target=_work, args=(number, words, base, told, count)) for number in range(words.workers)
    ]
    for worker in workers:
        worker.start()
    try:
        _watch(workers, count, words.faults, began)
    except KeyboardInterrupt:
        print("stopped; start it again with the same file to go on")
        return 130
    if died := [worker.exitcode for worker in workers if worker.exitcode]:
        print(f"a worker died (exit codes {died})")
        if count.value < words.faults:
            print("start it again with the same file to go on")
            return 1
    made = summary.summary(summary.read(words.results))
    print(summary.table(made))
    if words.json is not None:
        words.json.write_text(json.dumps(made, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return int(bool(made["violations"]))


def _watch(workers: Iterable[Any], count: Any, wanted: int, began: float) -> None:
    due = 0.0
    while any(worker.is_alive() for worker in workers):
        for worker in workers:
            worker.join(0.2)
        if time.monotonic() > due:
            seconds = time.monotonic() - began
            print(f"{count.value:,} of {wanted:,} faults after {seconds:.0f} s", flush=True)
            due = time.monotonic() + 20


def _work(number: int, words: argparse.Namespace, base: Path, told: set[int], count: Any) -> None:
    seed = words.first + number
    place = base / f"worker-{number}"
    with workspace(place / "disk") as disk, words.results.open("a", encoding="utf-8") as results:
        while count.value < words.faults:
            if seed not in told:
                cpu = _cpu()
                story = tell(seed, base, disk, place)
                with count.get_lock():
                    count.value += len(story.faults)
                line = asdict(story) | {"cpu": round(_cpu() - cpu, 3), "seconds": round(story.seconds, 3)}
                if story.violation is None:
                    line.pop("log")
                else:
                    print(f"VIOLATION in story {seed} ({story.kind}): {story.violation}", flush=True)
                    print(f"  repeat it with: python tests/soak/soak.py --seed {seed}", flush=True)
                results.write(json.dumps(line, ensure_ascii=False) + "\n")
                results.flush()
            seed += words.workers


def _cpu() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


if __name__ == "__main__":
    sys.exit(main())
