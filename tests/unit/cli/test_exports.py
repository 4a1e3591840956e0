"""`dpal export` as people run it: in processes of its own, which talk to nobody."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from command_line import dpal
from mlflow_reader import runs_of

CONFIG = {
    "data": {"source": "digits"},
    "evaluation": {"source": "digits", "options": {"part": "test"}, "is_public": True},
    "plan": {
        "target_epsilon": 8, "target_delta": 1e-4, "initial_size": 40, "query_sizes": [20], "batch_size": 16,
        "epochs": 1, "planner": "step-amplification", "accountant": "rdp", "selection": "random",
    },
    "model": {"name": "small-cnn"},
    "oracle": "simulated",
}  # fmt: skip
# Notes every address that is looked up or connected to, and refuses it.
_ALONE = """
import socket, sys
def refuse(*words, **options):
    open({log!r}, "a").write(repr(words[-1]) + "\\n")
    raise OSError("no network")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
from dpal.cli import run
run()
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports")
    (folder / "c.yaml").write_text(yaml.safe_dump(CONFIG))
    assert dpal("init", "clinic", "--config", "c.yaml", cwd=folder).returncode == 0
    return folder


def test_a_campaign_goes_to_mlflow_once_and_nobody_else_is_told(desk: Path) -> None:
    pytest.importorskip("mlflow")
    early = dpal("export", "mlflow", "clinic", "--to", "tracking", cwd=desk)
    assert early.returncode == 2 and "is not finished" in early.stderr and not (desk / "tracking").exists()
    assert dpal("run", "clinic", "--go-on", cwd=desk).returncode == 0
    # MLflow is silent in tests and on CI by itself; here it must not know that this is one.
    telling = ("PYTEST", "CI", "GITHUB", "MLFLOW", "DO_NOT_TRACK", "JENKINS", "BUILD")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(telling)}
    command = [sys.executable, "-c", _ALONE.format(log=str(desk / "addresses.txt"))]
    command += ["export", "mlflow", "clinic", "--to", "tracking", "--json"]
    done = subprocess.run(command, cwd=desk, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not (desk / "addresses.txt").exists()
    facts = json.loads(done.stdout)
    (run,) = runs_of(desk / "tracking/mlflow.db")
    assert facts["run"] == run.number and facts["parameters"] == run.parameters
    assert sorted(facts["artifacts"]) == sorted(run.artifacts)
    again = dpal("export", "mlflow", "clinic", "--to", "tracking", cwd=desk)
    assert again.returncode == 2 and "is there already" in again.stderr and "--force" in again.stderr
    forced = dpal("export", "mlflow", "clinic", "--to", "tracking", "--force", cwd=desk)
    assert forced.returncode == 0 and "of the experiment dpal at tracking" in forced.stdout
    assert [run.is_deleted for run in runs_of(desk / "tracking/mlflow.db")] == [True, False]
    # Its files are there, and nowhere else.
    assert sorted(path.name for path in desk.iterdir()) == ["c.yaml", "clinic", "tracking"]
