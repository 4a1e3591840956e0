"""Every experiment, once, at the smallest scale on a CPU: real digits and a tiny model stand for the real thing.

A sweep that dies goes on where it was, and several share the work.
"""

import json
import math
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from dpal.experiments.catalogue import EXPERIMENTS
from dpal.experiments.results import Results, finished
from dpal.experiments.results_page import page_of
from dpal.experiments.runs import PLANNING_TIME, Run
from dpal.experiments.sweep import Sweep, with_copies
from dpal.experiments.tables import table_of
from dpal.training.settings import ComputeSettings

SCALE = "smallest"


# Of computing: on a busy machine the clock on the wall says little.
LONGEST_SECONDS = 180


def computed(run: Run) -> str:
    """What a run computes, apart from its name: at this scale rows of different tasks are often the same."""
    return json.dumps({key: value for key, value in run.description().items() if key not in ("row", "task")})


RUNS = {
    row.full_name: Run(row=row, scale=SCALE, seed=1) for experiment in EXPERIMENTS.values() for row in experiment.rows
}
# The run that is really made, of those that compute the same.
FIRST_OF = {computed(run): run for run in reversed(RUNS.values())}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Results:
    place = tmp_path_factory.mktemp("experiments")
    results = Results(place / "results")
    sweep = Sweep(folder=place / "runs", results=results, scale=SCALE, compute=ComputeSettings(device="cpu"))
    started = time.process_time()
    for run in RUNS.values():
        first = FIRST_OF[computed(run)]
        if run == first:
            assert sweep.one(run) == "done"
        else:
            document = results.read(first)
            assert document is not None
            header = ("schema_version", "run", "run_hash", "nothing_is_private", "versions")
            results.write(run, {name: value for name, value in document.items() if name not in header})
    for experiment in EXPERIMENTS.values():
        assert set(sweep.run(experiment, seeds=(1,)).values()) == {"there already"}
    assert time.process_time() - started < LONGEST_SECONDS
    return results


@pytest.mark.exhaustive
@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda each: each.name)
def test_every_run_is_complete(swept: Results, experiment) -> None:
    for row in experiment.rows:
        document = swept.read(Run(row=row, scale=SCALE, seed=1))
        assert document is not None
        assert document["run"]["seed"] == 1 and document["versions"]["dpal"]
        if experiment.shows == PLANNING_TIME:
            assert len(document["planning_seconds"]) == 10
            continue
        assert document["verified"]
        assert document["epsilon_spent"] <= document["run"]["plan"]["target_epsilon"]
        assert len(document["plan"]["hash"]) == 64
        assert document["plan"]["steps"] == sum(phase["steps"] for phase in document["phases"])
        for phase in document["phases"]:
            assert all(0 <= phase[kind]["accuracy"] <= 1 for kind in ("weights", "average"))
        # Selections at random look at no scores.
        at_random = document["run"]["plan"]["selection"] == "random"
        # The planners for the cut may plan no query at all.
        queries = len(document["plan"]["selections"]) if row.one_query else 2
        assert len(document["selections"]) == (0 if at_random else queries)


@pytest.mark.exhaustive
@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda each: each.name)
def test_every_table_has_every_row(swept: Results, experiment) -> None:
    table = table_of(experiment, swept, scale=SCALE)
    assert len(table.rows) >= len(experiment.rows)
    assert all(len(cells) == len(table.headings) for cells in table.rows)
    assert not any("not run" in cell for cells in table.rows for cell in cells)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "experiment", [each for each in EXPERIMENTS.values() if each.shows != PLANNING_TIME], ids=lambda each: each.name
)
def test_weights_and_their_average_differ_in_every_run_and_are_both_measured(swept: Results, experiment) -> None:
    measured_apart = False
    for row in experiment.rows:
        run = FIRST_OF[computed(Run(row=row, scale=SCALE, seed=1))]
        (last,) = (swept.folder.parent / "runs").glob(f"**/{run.name}/**/phase-{len(_phases(swept, run))}.safetensors")
        tensors = load_file(last)
        kept = {name.partition("/")[2] for name in tensors if name.startswith("average/")}
        assert any(not torch.equal(tensors[f"weights/{name}"], tensors[f"average/{name}"]) for name in kept)
        # On few records two models may well score the same in one run.
        measured_apart |= any(phase["weights"] != phase["average"] for phase in _phases(swept, run))
    assert measured_apart


def _phases(swept: Results, run: Run) -> list:
    document = swept.read(run)
    assert document is not None
    return document["phases"]


@pytest.mark.exhaustive
def test_selecting_the_top_takes_the_top(swept: Results) -> None:
    (row,) = [row for row in EXPERIMENTS["headline"].rows if row.name == "entropy-none"]
    (document,) = finished(swept, row, scale=SCALE, seeds=(1,))
    for selection in document["selections"]:
        # The scores are computed again from the stored weights: rounding may swap neighbours at the cut.
        assert selection["accuracy"] >= 0.9
        assert math.isclose(sum(selection["histogram"]["pool"]), selection["unlabelled"])
        assert sum(selection["histogram"]["taken"]) == selection["taken"]


@pytest.mark.exhaustive
def test_the_page_says_that_the_scale_is_small(swept: Results) -> None:
    assert "SMALLEST SCALE" in page_of(swept, scale=SCALE)
    assert "Not run yet" in page_of(swept)


@pytest.mark.exhaustive
def test_a_finished_run_is_not_repeated(swept: Results, tmp_path: Path) -> None:
    sweep = Sweep(folder=tmp_path, results=swept, scale=SCALE)
    assert set(sweep.run(EXPERIMENTS["headline"], seeds=(1,)).values()) == {"there already"}
    assert not any(tmp_path.iterdir())


@pytest.mark.exhaustive
def test_a_result_of_other_settings_is_refused(swept: Results, tmp_path: Path) -> None:
    from dpal.errors import BadData

    run = Run(row=EXPERIMENTS["headline"].rows[0], scale=SCALE, seed=1)
    other = Results(tmp_path)
    path = other.path(run)
    path.parent.mkdir(parents=True)
    document = json.loads(swept.path(run).read_text())
    path.write_text(json.dumps({**document, "run_hash": "0" * 64}))
    with pytest.raises(BadData, match="different settings"):
        other.read(run)


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


def test_copies_do_not_need_more_memory() -> None:
    assert with_copies(ComputeSettings(max_physical_batch_size=512), 4).max_physical_batch_size == 128


def test_a_run_in_other_hands_is_left_alone(tmp_path) -> None:
    from dpal.campaign.lock import only_writer

    run = Run(row=EXPERIMENTS["headline"].rows[0], scale="smallest", seed=1)
    place = tmp_path / "runs" / "smallest" / run.name
    place.mkdir(parents=True)
    sweep = Sweep(folder=tmp_path / "runs", results=Results(tmp_path / "results"), scale="smallest")
    with only_writer(place):
        assert sweep.one(run) == "busy"
