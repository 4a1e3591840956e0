import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from small_campaigns import blind_campaign, create, linear_held_out, linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.campaign.config import checked_config, read_config
from dpal.errors import InvalidArgument
from dpal.experiments.demo import digits_document
from dpal.reports.campaign_report import write_report


def page(folder: Path, **options: Any) -> str:
    return write_report(folder, folder / "reports/report.html", **options).read_text()


def test_a_report_at_every_stage_of_a_campaigns_life(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    campaign = Campaign.create(
        folder,
        plan=linear_plan(),
        pool=linear_pool(),
        model=linear_model(),
        evaluation=linear_held_out(),
        evaluation_is_public=True,
    )
    assert "Planned" in page(folder)
    campaign.run(go_on=True)
    assert "Waiting for labels" in page(folder)
    # How many answers are missing tells about the records: not for the public part.
    public = page(folder, internal=False)
    assert "wait for labels" in public
    assert "wait for 8" not in public

    class Stop(Exception):
        """The machine dies."""

    def dies(phase: object, *args: object, **options: object) -> None:
        raise Stop

    names = campaign.state().groups[0]
    (tmp_path / "l.csv").write_text("id,label\n" + "".join(f"{name},yes\n" for name in names))
    campaign.import_labels(tmp_path / "l.csv", linear_pool())
    broken = Campaign.open(
        folder, pool=linear_pool(), model=linear_model(), evaluation=linear_held_out(), evaluation_is_public=True
    )
    broken.runner.model.at(broken.state()).train = dies  # type: ignore[method-assign]
    with pytest.raises(Stop):
        broken.run(go_on=True)
    assert "Interrupted" in page(folder)
    resumed = Campaign.open(
        folder,
        pool=linear_pool(),
        model=linear_model(),
        evaluation=linear_held_out(),
        evaluation_is_public=True,
        oracle="simulated",
    )
    resumed.run(go_on=True)
    text = page(folder)
    assert "Finished" in text
    assert "accuracy by labels and by ε" in text
    data = json.loads((folder / "reports/report.json").read_text())
    assert data["internal"]["labels"]["resumed"] == 1
    assert data["verification"]["holds"]


def test_what_may_be_handed_on_holds_nothing_internal(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    Campaign.create(folder, plan=linear_plan(), pool=linear_pool(), model=linear_model(), oracle="simulated").run(
        go_on=True
    )
    assert "Internal: not covered by the promise" in page(folder)
    text = page(folder, internal=False)
    assert "Internal" not in text
    data = json.loads((folder / "reports/report.json").read_text())
    assert data["internal"] is None
    for name in ("skipped", "cannot_tell", "labelled", "corrected", "seconds", "waiting_for_labels"):
        assert f'"{name}"' not in json.dumps(data)


def test_a_simulation_says_so_in_red(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    create(folder).run(go_on=True)
    text = page(folder)
    assert 'class="promise bad"' in text
    assert "nothing is private" in text


def test_a_baseline_is_drawn_beside_it(tmp_path: Path) -> None:
    for name in ("random", "threshold"):
        create(tmp_path / name, selection=name).run(go_on=True)
    with_baseline = page(tmp_path / "threshold", baseline=tmp_path / "random")
    assert "baseline" in json.loads((tmp_path / "threshold/reports/report.json").read_text())
    assert len(with_baseline) > len(page(tmp_path / "threshold"))


def test_a_model_at_chance_is_called_that_in_red_with_the_numbers(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    campaign = blind_campaign(folder)
    campaign.run()
    text = " ".join(page(folder).split())
    assert "Stopped at chance. Next: decide whether to go on" in text
    assert '<p class="warning">After phase 1: 60.0% of the 40 held-out records are right; always answering' in text
    assert '<td class="name">yes</td><td>16</td><td>0</td><td>0.00%</td>' in text
    assert "Expected calibration error" in text
    campaign.run(go_on=True)
    assert text.count("told to go on") == 0
    assert page(folder, internal=False).count("told to go on") == 2


def test_a_simulation_says_how_to_get_random_labels_beside_it(tmp_path: Path) -> None:
    plan = {"planner": "step-amplification", "initial_size": 60, "query_sizes": [40], "batch_size": 20, "epochs": 1}
    document = digits_document(plan | {"accountant": "rdp"})
    config = checked_config(document | {"seed": 3, "not_private": True})
    Campaign.from_config(tmp_path / "my sim", config).run()
    text = page(tmp_path / "my sim").replace("&#39;", "'")
    (command,) = (line for line in text.splitlines() if line.startswith("<pre>dpal init"))
    assert "dpal report 'my sim' --baseline 'my sim-random'" in text
    # It works as it stands, from the folder that has the campaign.
    words = shlex.split(command.removeprefix("<pre>dpal init "))
    changed = read_config(tmp_path / words[2], [words[4]])
    Campaign.from_config(tmp_path / words[0], changed).run()
    with_baseline = page(tmp_path / "my sim", baseline=tmp_path / "my sim-random")
    assert "my sim-random, the baseline" in with_baseline
    assert "dpal init" not in with_baseline
    # A private campaign is not told to spend another ε.
    Campaign.from_config(tmp_path / "private", checked_config(document)).run(go_on=True)
    assert "dpal init" not in page(tmp_path / "private")


def test_only_html_is_written_as_html(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"\.html"):
        write_report(tmp_path, tmp_path / "report.json")
