"""What runs are, without running any: names, the paper's hyperparameters, plans at full scale."""

import json
import math

import pytest
from typer.testing import CliRunner

from dpal.cli import app
from dpal.errors import InvalidArgument
from dpal.experiments.catalogue import EXPERIMENTS, experiment_named
from dpal.experiments.paper import PAPER
from dpal.experiments.results import Results, figure
from dpal.experiments.runs import Run
from dpal.experiments.scales import SCALES
from dpal.experiments.sweep import Machine, Sweep
from dpal.experiments.tables import table_of
from dpal.planning.request import plan

ROWS = {row.full_name: row for experiment in EXPERIMENTS.values() for row in experiment.rows}
HEADLINE = {row.name: Run(row=row, seed=1) for row in EXPERIMENTS["headline"].rows}


def test_a_name_means_one_run() -> None:
    for experiment in EXPERIMENTS.values():
        for row in experiment.rows:
            assert Run(row=row, seed=1).hash() == Run(row=ROWS[row.full_name], seed=1).hash()
    hashes = {
        Run(row=row, scale=scale, seed=seed).hash() for row in ROWS.values() for scale in SCALES for seed in (1, 2)
    }
    assert len(hashes) == len(ROWS) * len(SCALES) * 2


def test_a_description_survives_json() -> None:
    for row in ROWS.values():
        description = Run(row=row, seed=1).description()
        assert json.loads(json.dumps(description))["plan"]["target_epsilon"] == description["plan"]["target_epsilon"]


def test_every_number_of_the_paper_has_a_row() -> None:
    assert set(PAPER) <= set(ROWS)


def test_the_papers_steps() -> None:
    """100 epochs of 25,000 in batches of 4,096; 30 epochs of each phase of the naive plan."""
    at_once = plan(**HEADLINE["random"].plan_arguments())
    assert [phase.steps for phase in at_once.phases] == [round(100 * 25_000 / 4_096)]
    naive = plan(**HEADLINE["random-naive-al"].plan_arguments())
    assert sum(phase.steps for phase in naive.phases) == pytest.approx(30 * 102_000 / 4_096, abs=3)


@pytest.mark.parametrize("name", HEADLINE)
def test_every_row_has_the_same_promise_and_labels(name: str) -> None:
    made = plan(**HEADLINE[name].plan_arguments())
    assert made.epsilon <= 8 and made.setting.target_delta == 1e-5
    assert sum(group.size for group in made.groups) == 25_000


def test_copies_do_not_need_more_memory() -> None:
    assert Machine(max_physical_batch_size=512).training(4)["max_physical_batch_size"] == 128


def test_a_run_in_other_hands_is_left_alone(tmp_path) -> None:
    from dpal.campaign.lock import only_writer

    run = Run(row=EXPERIMENTS["headline"].rows[0], scale="smallest", seed=1)
    place = tmp_path / "runs" / "smallest" / run.name
    place.mkdir(parents=True)
    sweep = Sweep(folder=tmp_path / "runs", results=Results(tmp_path / "results"), scale="smallest")
    with only_writer(place):
        assert sweep.one(run) == "busy"


def test_means_and_deviations() -> None:
    documents = [{"phases": [{"weights": {"accuracy": value}}]} for value in (0.6, 0.62)]
    found = figure(documents, "accuracy", "weights")
    assert found is not None and found.seeds == 2
    assert math.isclose(found.mean, 61) and math.isclose(found.deviation or 0, math.sqrt(2))
    assert str(found) == "61.00 ± 1.41 (2)"


def test_an_empty_cell_says_what_is_missing(tmp_path) -> None:
    table = table_of(EXPERIMENTS["headline"], Results(tmp_path))
    assert table.rows[0][2] == "not run: cifar10-resnet9.random"
    assert table.rows[0][1] == "66.58 ± 0.94"


def test_unknown_names_are_refused(tmp_path) -> None:
    with pytest.raises(InvalidArgument, match="headline"):
        experiment_named("table9")
    with pytest.raises(InvalidArgument, match="laptop"):
        Sweep(folder=tmp_path, results=Results(tmp_path), scale="tiny")
    with pytest.raises(InvalidArgument, match="entropy-laplace"):
        Sweep(folder=tmp_path, results=Results(tmp_path), scale="smallest").run(
            EXPERIMENTS["headline"], rows=["nobody"]
        )


def test_the_command_line(tmp_path) -> None:
    runner = CliRunner()
    listed = runner.invoke(app, ["experiments", "list"])
    assert listed.exit_code == 0 and "headline" in listed.output
    folders = ["--folder", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    arguments = ["experiments", "run", "headline", "--scale", "smallest", "--seed", "1", "--row", "random", *folders]
    ran = runner.invoke(app, arguments)
    assert ran.exit_code == 0, ran.output
    assert "SMALLEST SCALE" in ran.output and "done" in ran.output
    again = runner.invoke(app, arguments)
    assert "there already" in again.output
    results = ["--scale", "smallest", "--results", str(tmp_path / "results")]
    shown = runner.invoke(app, ["experiments", "table", "headline", *results])
    assert shown.exit_code == 0 and "not run" in shown.output
    page = tmp_path / "results.md"
    assert runner.invoke(app, ["experiments", "table", "all", *results, "--markdown", str(page)]).exit_code == 0
    assert page.read_text(encoding="utf-8").startswith("# Results")
