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
