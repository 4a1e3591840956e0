"""What a command costs: one reading of the hash chain and at most one certification. And what needs no torch."""

import csv
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from small_campaigns import linear_model, linear_plan, linear_pool
from typer.testing import CliRunner

from dpal.campaign.campaign import Campaign
from dpal.campaign.store import Recorded, Store
from dpal.cli import app
from dpal.planning import certification


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often the whole chain is read, how many facts are read, and how often a plan is certified."""
    counts: Counter[str] = Counter()
    recorded, certified = Store.recorded, certification.certified

    def counted_recorded(self: Store, *, after: Recorded | None = None) -> list[Recorded]:
        facts = recorded(self, after=after)
        counts["chain"] += after is None
        counts["facts"] += len(facts)
        return facts

    def counted_certified(*args: Any) -> Any:
        counts["certified"] += 1
        return certified(*args)

    monkeypatch.setattr(Store, "recorded", counted_recorded)
    # Wherever planning has imported it by name.
    for name, module in list(sys.modules.items()):
        if name.startswith("dpal.") and getattr(module, "certified", None) is certified:
            monkeypatch.setattr(module, "certified", counted_certified)
    return counts


def filled_in(folder: Path) -> Path:
    """An exported table with an answer in every line."""
    table = folder / "labels.csv"
    with table.open(newline="", encoding="utf-8-sig") as lines:
        heading, *rows = csv.reader(lines)
    with table.open("w", newline="", encoding="utf-8") as lines:
        csv.writer(lines).writerows([heading, *([*row[:-1], "yes"] for row in rows)])
    return table


def test_every_command_reads_the_chain_once_and_certifies_at_most_once(
    tmp_path: Path, counted: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib (pip install dpal[plots])")
    # With so few labels it makes other plans, to say which change would help.
    monkeypatch.setattr("dpal.campaign.little_signal.noise_warning", lambda *given, **named: None)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).integers(0, 256, (60, 1, 8, 8), dtype=np.uint8))
    plan: dict[str, object] = {"target_epsilon": 8, "target_delta": 1e-3, "planner": "step-amplification"}
    # A cut may ask nobody in so small a pool.
    plan |= {"initial_size": 10, "query_sizes": [6], "batch_size": 4, "selection": "random"}
    document = {
        "data": {"source": "numpy", "options": {"file": "x.npy", "classes": ["no", "yes"]}},
        "plan": {**plan, "epochs": 1, "accountant": "rdp"},
        "model": {"name": "small-cnn"},
    }
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(document))
    campaign = str(tmp_path / "c")

    def dpal(*words: str, certified: int, exit_code: int = 0, chain: int = 1) -> None:
        counted.clear()
        done = CliRunner().invoke(app, list(words))
        assert done.exit_code == exit_code, (words, done.output, done.exception)
        read = dict(counted)
        facts = len(Campaign(campaign).reader.recorded)
        assert read.get("certified", 0) == certified, words
        assert read.get("chain", 0) == chain, words
        # Nothing that was read or written before in this command is read a second time.
        assert read.get("facts", 0) <= facts, words

    dpal("init", campaign, "--config", str(tmp_path / "c.yaml"), certified=1)
    dpal("status", campaign, certified=0)
    for query in ("initial", "first"):
        dpal("run", campaign, certified=1, exit_code=3)
        dpal("labels", "export", campaign, "--to", str(tmp_path / query), certified=0)
        dpal("labels", "import", campaign, str(filled_in(tmp_path / query)), certified=0)
    dpal("withdraw", campaign, "3", certified=0)
    dpal("labels", "close", campaign, certified=0)
    dpal("labels", "identify", campaign, "nobody", certified=0, exit_code=2)
    dpal("run", campaign, certified=1)
    dpal("status", campaign, certified=0)
    dpal("verify", campaign, "--ledger", str(tmp_path / "ledger.json"), certified=1)
    dpal("report", campaign, certified=1)
    dpal("certificate", campaign, "--to", str(tmp_path / "c.pdf"), certified=1)
    dpal("verify", str(tmp_path / "c.pdf.json"), certified=1, chain=0)
    dpal("export-model", campaign, "--to", str(tmp_path / "model.safetensors"), certified=0)


def test_a_failed_run_and_its_advice_read_the_chain_once(tmp_path: Path, counted: Counter[str]) -> None:
    Campaign.create(tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model())
    counted.clear()
    # Its pool came from Python, so the command line cannot open it.
    assert CliRunner().invoke(app, ["run", str(tmp_path / "c")]).exit_code != 0
    assert counted["chain"] == 1
    assert counted["certified"] == 0


def test_reading_a_campaign_needs_no_torch(tmp_path: Path) -> None:
    Campaign.create(tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model())
    code = (
        "import sys; from dpal.campaign.campaign import Campaign; c = Campaign(sys.argv[1]); c.status(); "
        "assert c.verify().holds; assert 'torch' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "c")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_campaign_without_its_data_cannot_run(tmp_path: Path) -> None:
    Campaign.create(tmp_path / "c", plan=linear_plan(), pool=linear_pool(), model=linear_model())
    with pytest.raises(TypeError, match=r"Campaign\.open"):
        Campaign(tmp_path / "c").run()
