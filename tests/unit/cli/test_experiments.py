from pathlib import Path

from typer.testing import CliRunner

from dpal.cli import app
from dpal.errors import InvalidArgument
from dpal.experiments.catalogue import EXPERIMENTS

RESULTS = Path(__file__).parents[3] / "experiments" / "results"


def test_the_list_has_every_experiment() -> None:
    done = CliRunner().invoke(app, ["experiments", "list"], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    for name in EXPERIMENTS:
        assert name in done.stdout


def test_a_table_is_printed_or_written_as_markdown(tmp_path: Path) -> None:
    call = ["experiments", "table", "delta", "--results", str(RESULTS)]
    printed = CliRunner().invoke(app, call, env={"COLUMNS": "200"})
    assert "the paper's sizes" in printed.stdout
    file = tmp_path / "delta.md"
    assert CliRunner().invoke(app, [*call, "--markdown", str(file)]).exit_code == 0
    assert file.read_text().startswith(f"## {EXPERIMENTS['delta'].title}")


def test_unknown_names_and_scales_are_refused() -> None:
    for words in (["run", "headlines"], ["table", "headlines"], ["table", "delta", "--scale", "tiny"]):
        done = CliRunner().invoke(app, ["experiments", *words])
        assert isinstance(done.exception, InvalidArgument)
        assert "one of" in str(done.exception)


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
