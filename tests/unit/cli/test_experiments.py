"""The commands of experiments."""

from typer.testing import CliRunner

from dpal.cli import app


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
