"""A model that learns nothing, on the command line: the campaign stops before the next charge, and says what to do."""

import json
import os
import subprocess
from pathlib import Path

from command_line import checked

# It answers 3 whatever the image, and does not train with so small a learning rate.
MODEL = """
from torch import nn

def stubborn(classes, channels):
    model = nn.Sequential(nn.Flatten(), nn.Linear(64 * channels, classes))
    for parameter in model.parameters():
        parameter.data.zero_()
    model[1].bias.data[3] = 1.0
    return model
"""
CONFIG = """
data: {source: digits}
evaluation: {source: digits, options: {part: test}, is_public: true}
plan: {target_epsilon: 8, initial_size: 100, query_sizes: [60, 40], batch_size: 40, epochs: 2, accountant: rdp,
       planner: step-amplification}
model: {name: "stubborn:stubborn"}
training: {learning_rate: 1.0e-30, optimizer: sgd}
oracle: simulated
"""


def dpal(*words: object, cwd: Path, codes: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(cwd), os.environ.get("PYTHONPATH")]))
    return checked(*words, cwd=cwd, codes=codes, environment=os.environ | {"PYTHONPATH": path})


def test_a_model_at_chance_stops_the_campaign_until_it_is_told_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "stubborn.py").write_text(MODEL)
    (tmp_path / "c.yaml").write_text(CONFIG)
    dpal("init", "c", "--config", "c.yaml", cwd=tmp_path)
    stopped = dpal("run", "c", cwd=tmp_path, codes=(6,))
    words = " ".join(stopped.stdout.split())
    assert "of the 360 held-out records are right; always answering '" in words
    assert (
        "it gives the same answer to every record. A model that knows nothing has a balanced accuracy of 10.0%" in words
    )
    assert "dpal run c --go-on --set training.learning_rate=3e-30" in words
    assert "error" not in stopped.stderr
    charged = json.loads(dpal("verify", "c", "--json", "--ledger", "l.json", cwd=tmp_path).stdout)["epsilon_spent"]
    assert len(json.loads((tmp_path / "l.json").read_text())["phases"]) == 1
    # Asking again changes nothing; status says the same.
    dpal("run", "c", cwd=tmp_path, codes=(6,))
    status = json.loads(dpal("status", "c", "--json", cwd=tmp_path).stdout)
    assert status["stage"] == "stopped-at-chance"
    assert status["epsilon_spent"] == charged
    assert "stopped at chance" in dpal("status", "c", cwd=tmp_path).stdout
    refused = dpal("run", "c", "--set", "training.learning_rate=1", cwd=tmp_path, codes=(2,))
    assert "--go-on" in refused.stderr
    done = dpal("run", "c", "--go-on", cwd=tmp_path)
    assert "told to go on after phase 1" in " ".join(done.stdout.split())
    assert "The final model is no better than chance: do not use it." in " ".join(done.stdout.split())
    assert json.loads(dpal("verify", "c", "--json", cwd=tmp_path).stdout)["holds"]
    dpal("report", "c", "--public", cwd=tmp_path)
    page = " ".join((tmp_path / "c/reports/report.html").read_text().split())
    assert "After phase 1, whose model is no better than chance, the campaign was told to go on" in page
