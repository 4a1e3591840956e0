"""Certificates on the command line; tests/end_to_end/test_certificates.py has the whole story."""

import json
from pathlib import Path

import pytest
from small_campaigns import linear_model, linear_plan, linear_pool
from typer.testing import CliRunner

from dpal.campaign.campaign import Campaign
from dpal.cli import app


def test_keys_sign_and_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call = CliRunner().invoke
    Campaign.create(tmp_path / "clinic", plan=linear_plan(), pool=linear_pool(), model=linear_model())
    made = json.loads(call(app, ["keys", "new", "keys", "--json"]).stdout)
    assert Path(made["private_key"]).is_file()
    written = call(app, ["certificate", "clinic", "--to", "c.pdf", "--sign-with", made["private_key"], "--json"])
    document = json.loads(written.stdout)
    assert document == json.loads(Path("c.pdf.json").read_text())
    checked = call(app, ["verify", "c.pdf.json", "--key", made["public_key"], "--json"])
    facts = json.loads(checked.stdout)
    assert facts["signed_with"] == made["fingerprint"]
    assert facts["key_was_given"]
    assert facts["holds"]

    Path("c.pdf.json").write_text(json.dumps(document | {"epsilon": -1}))
    refused = call(app, ["verify", "c.pdf.json"])
    assert refused.exit_code == 5
    assert "NOT VERIFIED" in refused.stderr
