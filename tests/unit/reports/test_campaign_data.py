import json
from pathlib import Path

import pytest
import yaml
from small_campaigns import create, linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.errors import InvalidArgument
from dpal.reports.campaign_data import report_data
from dpal.reports.campaign_report import write_report


def test_paths_of_the_machine_are_not_shown(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    create(folder)
    assert str(tmp_path) not in json.dumps(report_data(folder))


def test_addresses_and_commands_are_not_shown(tmp_path: Path) -> None:
    """A webhook's address is often a secret itself, and so may be what a command is called with."""
    folder = tmp_path / "c"
    create(folder)
    document = yaml.safe_load((folder / "campaign.yaml").read_text(encoding="utf-8"))
    document["labels"] = {"source": "label-studio", "url": "http://me:SECRET@127.0.0.1:1", "token": "/place/SECRET"}
    document["events"] = {"webhook": "https://hooks.example/SECRET", "command": ["mail", "--password", "SECRET"]}
    (folder / "campaign.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    for internal in (True, False):
        data = report_data(folder, internal=internal)
        assert "SECRET" not in json.dumps(data) and "events" not in data["configuration"]
        assert data["configuration"]["labels"] == {"source": "label-studio"}
        page = write_report(folder, tmp_path / f"{internal}.html", internal=internal)
        assert "SECRET" not in page.read_text(encoding="utf-8")


def test_the_public_part_does_not_tell_how_often_labels_came(tmp_path: Path) -> None:
    """An import in two parts, a correction and a resumption are facts; their number tells about records."""
    public: list[str] = []
    for parts in (1, 3):
        folder = tmp_path / f"c{parts}"
        campaign = Campaign.create(folder, plan=linear_plan(), pool=linear_pool(), model=linear_model())
        campaign.run(go_on=True)
        names = campaign.state().groups[0]
        for part in range(parts):
            own = names[part::parts]
            (tmp_path / "l.csv").write_text("id,label\n" + "".join(f"{name},yes\n" for name in own))
            campaign.import_labels(tmp_path / "l.csv", linear_pool())
        public.append(json.dumps(report_data(folder, internal=False)["verification"]["checks"]))
    assert public[0] == public[1]


def test_a_held_out_set_is_declared_public_whenever_it_is_given(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    Campaign.create(folder, plan=linear_plan(), pool=linear_pool(), model=linear_model())
    with pytest.raises(InvalidArgument, match="evaluation_is_public"):
        Campaign.open(folder, pool=linear_pool(), model=linear_model(), evaluation=linear_pool())
