"""Attacks of dpal.audit on an old commit, which had the bugs that they are for, and on the code as it is.

P1: sums in float32. P2: batches whose size depends on the draw. P3: a file sorted between two phases. P6: a phase
trained twice on one charge. Each must be found in the old code, and must not be found now.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import torch
from _old_code import constructions, largest
from _report import Report, parser

import dpal
from dpal.audit import worst_cases
from dpal.audit.attack import Target
from dpal.audit.changed_data import made_twice, reordered
from dpal.audit.rounding import moves

ROOT = Path(__file__).parents[1]
# The last commit before sums in float64, padded batches, fingerprints of contents and recorded hashes of models.
LAST_BEFORE = "798d1f3931de"
WHAT = {
    "P1": "P1: sums in float32, largest move (clips)",
    "P2": "P2: batches not padded, largest move (clips)",
    "P3": "P3: file sorted between phases, records trained under two ids",
    "P6": "P6: phase trained twice on one charge, models apart (clips)",
}


def git(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=False)  # noqa: S603, S607


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--commit", default=LAST_BEFORE, help="the old commit (default: %(default)s)")
    options = command.parse_args()
    found = git("rev-parse", "--verify", "--quiet", f"{options.commit}^{{commit}}")
    if found.returncode:
        print(f"skipped: this folder has no git history with the commit {options.commit}, so no old code to attack")
        return
    commit = found.stdout.decode().strip()
    then, now = attacked_then(commit, quick=options.quick), attacked_now(quick=options.quick)
    report = Report(name="audit_old_code", packages=("torch",))
    for name, what in WHAT.items():
        if name == "P2" and not constructions(worst_cases, quick=True)[name]:
            print("P2 is left out: this machine rounds a row alike in batches of any size")
            continue
        limit = 1.0 if name in ("P1", "P2") else 0.0
        report.row(
            what=what, then=then[name], found_then=then[name] > limit, now=now[name], found_now=now[name] > limit
        )
        report.claim(f"{what}: then", then[name], f"above {limit:g}", then[name] > limit)
        report.claim(f"{what}: now", now[name], f"at most {limit:g}", now[name] <= limit)
    report.finish(options.json, commit=commit)


def attacked_then(commit: str, *, quick: bool) -> dict[str, float]:
    """What is found in the old code, in a process that knows no other."""
    with tempfile.TemporaryDirectory(prefix="dpal-old-") as folder:
        archive = git("archive", commit, "src")
        archive.check_returncode()
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
        program = [str(Path(__file__).with_name("_old_code.py")), str(worst_cases.__file__)]
        done = subprocess.run(  # noqa: S603
            [sys.executable, *program, *(["--quick"] if quick else [])],
            env=os.environ | {"PYTHONPATH": str(Path(folder) / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"The old code at {commit} failed:\n{done.stderr}")
    return numbers(json.loads(done.stdout.splitlines()[-1]))


def attacked_now(*, quick: bool) -> dict[str, float]:
    """The same constructions, by the attacks of today."""
    # What carries a construction out needs no plan's numbers.
    plan = dpal.plan(
        target_epsilon=8,
        target_delta=1e-3,
        pool_size=40,
        initial_size=16,
        query_sizes=(),
        batch_size=16,
        epochs=1,
        accountant="rdp",
        planner="step-amplification",
    )
    target = Target(plan=plan, engine="fused", device="cpu")
    made = constructions(worst_cases, quick=quick)
    rounding = {name: largest(lambda each: float(moves(each, target).max()), each) for name, each in made.items()}
    return numbers(rounding | {"P3": {"twice": reordered().twice}, "P6": {"apart": made_twice().apart}})


def numbers(found: dict[str, dict[str, object]]) -> dict[str, float]:
    keys = {"P1": "move", "P2": "move", "P3": "twice", "P6": "apart"}
    return {name: float(str(found[name][key])) for name, key in keys.items()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
