"""A sweep that dies goes on where it was."""

from pathlib import Path

import pytest

from dpal.experiments.catalogue import EXPERIMENTS
from dpal.experiments.results import Results
from dpal.experiments.runs import Run
from dpal.experiments.sweep import Sweep

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
