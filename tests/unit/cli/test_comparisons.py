from pathlib import Path

import pytest
from small_campaigns import linear_held_out, linear_model, linear_plan, linear_pool
from typer.testing import CliRunner

from dpal.campaign.campaign import Campaign
from dpal.cli import app
from dpal.planning.promises import expected_labels


def test_names_group_runs_and_every_file_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Campaign.create(
        tmp_path / "c",
        plan=linear_plan(selection="cut"),
        pool=linear_pool(),
        model=linear_model(),
        oracle="simulated",
        evaluation=linear_held_out(),
        evaluation_is_public=True,
    ).run(go_on=True)
    done = CliRunner().invoke(app, ["compare", "[ours]=c", "[ours]=c", "c", "--to", "out/b.html"])
    assert done.exit_code == 0, done.output
    assert "| [ours] | 2 | 8 |" in done.stdout
    assert f"cut | 1 | 8 | {sum(expected_labels(linear_plan(selection='cut')))} (planned) |" in done.stdout
    assert {file.name for file in Path("out").iterdir()} == {"b.html", "b.md", "b.tex", "b.json"}
    assert CliRunner().invoke(app, ["compare", "c", "--to", "out/b.html"]).exit_code == 1
