"""A sweep that dies goes on where it was, and several share the work."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dpal.experiments.catalogue import EXPERIMENTS
from dpal.experiments.results import Results
from dpal.experiments.runs import Run
from dpal.experiments.sweep import Sweep
from dpal.training.settings import ComputeSettings

ROW = next(row for row in EXPERIMENTS["headline"].rows if row.name == "entropy-laplace")


class StoppedError(Exception):
    """Stands for whatever ends a process."""


def sweep_in(place: Path, tell=lambda words: None) -> Sweep:
    return Sweep(folder=place / "runs", results=Results(place / "results"), scale="smallest", tell=tell)


def test_an_interrupted_run_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    run = Run(row=ROW, scale="smallest", seed=3)

    def stop_after_phase_2(words: str) -> None:
        if "phase 2 of 3 trained" in words:
            raise StoppedError

    with pytest.raises(StoppedError):
        sweep_in(tmp_path / "a", stop_after_phase_2).one(run)
    assert sweep_in(tmp_path / "a").one(run) == "done"
    assert sweep_in(tmp_path / "b").one(run) == "done"
    broken, whole = (Results(tmp_path / name / "results").read(run) for name in ("a", "b"))
    assert broken is not None and whole is not None
    assert broken["phases_before_interruption"] == 2 and whole["phases_before_interruption"] == 0
    for kind in ("weights", "average"):
        assert [phase[kind] for phase in broken["phases"]] == [phase[kind] for phase in whole["phases"]]
    assert broken["selections"] == whole["selections"]


def test_other_settings_never_go_on_with_the_same_campaign(tmp_path: Path) -> None:
    first = Run(row=ROW, scale="smallest", seed=3)
    other = Run(row=replace(ROW, training={"learning_rate": 0.5}), scale="smallest", seed=3)
    sweep = sweep_in(tmp_path)
    assert sweep.one(first) == "done"
    # As the refusal says, the result is moved away.
    sweep.results.path(first).unlink()
    assert sweep.one(other) == "done"
    found = sweep.results.read(other)
    assert found is not None and found["phases_before_interruption"] == 0


def test_the_precision_is_that_of_the_campaign(tmp_path: Path) -> None:
    run = Run(row=ROW, scale="smallest", seed=3)

    def stop(words: str) -> None:
        if "phase 1 of 3 trained" in words:
            raise StoppedError

    with pytest.raises(StoppedError):
        sweep_in(tmp_path, stop).one(run)
    later = replace(sweep_in(tmp_path), compute=ComputeSettings(precision="bf16"))
    assert later.one(run) == "done"
    found = later.results.read(run)
    assert found is not None and found["precision"] == "float32"


def test_two_processes_share_the_work(tmp_path: Path) -> None:
    """Each run is done by one of them; what the other one works on is busy or there already."""
    program = "from dpal.cli import run; run()"
    command = [sys.executable, "-c", program, "experiments", "run", "headline", "--scale", "smallest", "--seed", "1"]
    rows = ("random", "random-naive-al", "random-al", "entropy-laplace")
    command += [part for row in rows for part in ("--row", row)]
    command += ["--folder", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    for row in rows:
        outcomes = sorted(
            outcome for text in said for outcome in re.findall(rf"cifar10-resnet9\.{row}\.seed-1:\s+([a-z ]+)", text)
        )
        assert outcomes in (["busy", "done"], ["done", "there already"])
    assert len(list((tmp_path / "results" / "smallest").glob("*.json"))) == len(rows)
