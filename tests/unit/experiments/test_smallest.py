"""Every experiment, once, at the smallest scale on a CPU: real digits and a tiny model stand for the real thing."""

import json
import math
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from dpal.experiments.catalogue import EXPERIMENTS
from dpal.experiments.page import page_of
from dpal.experiments.results import Results, finished
from dpal.experiments.runs import PLANNING_TIME, Run
from dpal.experiments.sweep import Sweep
from dpal.experiments.tables import table_of
from dpal.training.settings import ComputeSettings

SCALE = "smallest"
# Of computing: on a busy machine the clock on the wall says little.
LONGEST_SECONDS = 180


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Results:
    place = tmp_path_factory.mktemp("experiments")
    results = Results(place / "results")
    sweep = Sweep(folder=place / "runs", results=results, scale=SCALE, compute=ComputeSettings(device="cpu"))
    started = time.process_time()
    for experiment in EXPERIMENTS.values():
        outcomes = sweep.run(experiment, seeds=(1,))
        assert set(outcomes.values()) <= {"done", "there already"}
    assert time.process_time() - started < LONGEST_SECONDS
    return results


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
        assert len(document["selections"]) == (0 if at_random else 2)


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda each: each.name)
def test_every_table_has_every_row(swept: Results, experiment) -> None:
    table = table_of(experiment, swept, scale=SCALE)
    assert len(table.rows) >= len(experiment.rows)
    assert all(len(cells) == len(table.headings) for cells in table.rows)
    assert not any("not run" in cell for cells in table.rows for cell in cells)


@pytest.mark.parametrize(
    "experiment", [each for each in EXPERIMENTS.values() if each.shows != PLANNING_TIME], ids=lambda each: each.name
)
def test_weights_and_their_average_differ_in_every_run_and_are_both_measured(swept: Results, experiment) -> None:
    measured_apart = False
    for row in experiment.rows:
        run = Run(row=row, scale=SCALE, seed=1)
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


def test_selecting_the_top_takes_the_top(swept: Results) -> None:
    (row,) = [row for row in EXPERIMENTS["headline"].rows if row.name == "entropy-none"]
    (document,) = finished(swept, row, scale=SCALE, seeds=(1,))
    for selection in document["selections"]:
        # The scores are computed again from the stored weights: rounding may swap neighbours at the cut.
        assert selection["accuracy"] >= 0.9
        assert math.isclose(sum(selection["histogram"]["pool"]), selection["unlabelled"])
        assert sum(selection["histogram"]["taken"]) == selection["taken"]


def test_the_page_says_that_the_scale_is_small(swept: Results) -> None:
    assert "SMALLEST SCALE" in page_of(swept, scale=SCALE)
    assert "Not run yet" in page_of(swept)


def test_a_finished_run_is_not_repeated(swept: Results, tmp_path: Path) -> None:
    sweep = Sweep(folder=tmp_path, results=swept, scale=SCALE)
    assert set(sweep.run(EXPERIMENTS["headline"], seeds=(1,)).values()) == {"there already"}
    assert not any(tmp_path.iterdir())


def test_a_result_of_other_settings_is_refused(swept: Results, tmp_path: Path) -> None:
    from dpal.errors import BadData

    run = Run(row=EXPERIMENTS["headline"].rows[0], scale=SCALE, seed=1)
    other = Results(tmp_path)
    path = other.path(run)
    path.parent.mkdir(parents=True)
    document = json.loads(swept.path(run).read_text())
    path.write_text(json.dumps({**document, "run_hash": "0" * 64}))
    with pytest.raises(BadData, match="other settings"):
        other.read(run)
