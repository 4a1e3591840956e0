"""What a new user does, command by command, each in its own process."""

import csv
import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import checked as dpal
from real_data import real_file
from safetensors.numpy import load_file

from dpal.data import from_table, load_dataset

ROOT = Path(__file__).parents[2]
CLASSES = ["basophil", "eosinophil", "erythroblast", "ig", "lymphocyte", "monocyte", "neutrophil", "platelet"]


def fill_in(table: Path, truth: dict[str, str], *, leave_out: int = 0) -> None:
    """What the experts do."""
    with table.open(newline="", encoding="utf-8-sig") as lines:
        rows = list(csv.reader(lines))
    place = rows[0].index("label")
    for row in rows[1 + leave_out :]:
        row[place] = truth[row[0]]
    with table.open("w", newline="", encoding="utf-8") as lines:
        csv.writer(lines).writerows(rows)


# A campaign from its beginning to its end. (tests/unit/test_docs.py runs what the documents show.)
COMMANDS = """\
dpal init trial --data digits --epsilon 8 --set plan.query_sizes=[100] --set model.name=small-cnn
dpal run trial
dpal labels export trial --to week-1
dpal labels import trial week-1/labels.csv
dpal run trial
dpal labels export trial --to week-2
dpal labels import trial week-2/labels.csv
dpal run trial
dpal status trial
dpal verify trial
dpal report trial
dpal certificate trial --to certificate.pdf
dpal verify certificate.pdf.json
dpal export-model trial --to model.safetensors
"""


def test_a_whole_campaign_by_commands(tmp_path: Path) -> None:
    commands = [shlex.split(line) for line in COMMANDS.splitlines()]
    digits = load_dataset("digits")
    assert digits.labels is not None
    truth = {name: str(label) for name, label in zip(digits.ids.tolist(), digits.labels.tolist(), strict=True)}
    for words in commands:
        if words[1:3] == ["labels", "import"]:
            fill_in(tmp_path / words[4], truth)
        dpal(*words[1:], cwd=tmp_path, codes=(0, 3) if words[1] == "run" else (0,))
    status = json.loads(dpal("status", "trial", "--json", cwd=tmp_path).stdout)
    assert status["stage"] == "finished"
    # A correction after the end is recorded, and says that it comes too late.
    assert "no model will" not in dpal("labels", "import", "trial", "week-2/labels.csv", cwd=tmp_path).stdout
    fill_in(tmp_path / "week-2/labels.csv", dict.fromkeys(truth, "3"))
    late = dpal("labels", "import", "trial", "week-2/labels.csv", cwd=tmp_path).stdout
    assert "no model will be trained on them" in " ".join(late.split())
    assert status["is_private"]
    assert load_file(tmp_path / "model.safetensors")["classifier.bias"].shape == (10,)
    card = json.loads((tmp_path / "model.safetensors.json").read_text())
    assert card["epsilon"] <= 8
    page = (tmp_path / "trial/reports/report.html").read_text()
    assert "differential privacy allows" in page
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )


def test_a_campaign_with_experts_on_real_blood_cells(tmp_path: Path) -> None:
    file = real_file("bloodcell_128/val.parquet")
    (tmp_path / "clinic.yaml").write_text(
        f"""
data:
  source: table
  options: {{file: {file}, image: image, id_column: id, classes: {CLASSES}, size: 16, channels: 3}}
  ids_are_free_of_content: true
plan: {{target_epsilon: 8, initial_size: 120, query_sizes: [60, 40], batch_size: 40, epochs: 2}}
model: {{name: small-cnn}}
""",
        encoding="utf-8",
    )
    dpal("init", "clinic", "--config", "clinic.yaml", cwd=tmp_path)
    assert json.loads(dpal("status", "clinic", "--json", cwd=tmp_path).stdout)["stage"] == "planned"
    known = from_table(file, image="image", label="label", id_column="id", classes=CLASSES, size=16, channels=3)
    assert known.labels is not None
    truth = {name: CLASSES[label] for name, label in zip(known.ids.tolist(), known.labels.tolist(), strict=True)}
    rounds = 0
    while dpal("run", "clinic", cwd=tmp_path, codes=(0, 3)).returncode == 3:
        rounds += 1
        dpal("labels", "export", "clinic", "--to", f"round-{rounds}", cwd=tmp_path)
        table = tmp_path / f"round-{rounds}/labels.csv"
        assert (tmp_path / f"round-{rounds}/images/000001.png").stat().st_size > 1000
        # A wrong word is refused whole.
        fill_in(table, truth | dict.fromkeys(list(truth), "unicorn"))
        refused = dpal("labels", "import", "clinic", table, cwd=tmp_path, codes=(2,))
        assert "unicorn" in refused.stderr
        assert json.loads(dpal("status", "clinic", "--json", cwd=tmp_path).stdout)["next_step"].startswith("wait")
        # Then part of it, then the rest, with a skip among them.
        fill_in(table, truth, leave_out=10)
        with table.open(newline="") as lines:
            rows = list(csv.reader(lines))
        for row in rows[1:11]:
            row[-1] = ""
        with table.open("w", newline="") as lines:
            csv.writer(lines).writerows(rows)
        counts = json.loads(dpal("labels", "import", "clinic", table, "--json", cwd=tmp_path).stdout)
        assert counts["internal"]["waiting_for_labels"] == 10
        fill_in(table, truth | {rows[1][0]: "cannot tell"})
        counts = json.loads(dpal("labels", "import", "clinic", table, "--json", cwd=tmp_path).stdout)
        assert counts["internal"]["new"] == 10
        assert counts["internal"]["waiting_for_labels"] == 0
    assert rounds == 3
    status = json.loads(dpal("status", "clinic", "--json", cwd=tmp_path).stdout)
    assert status["internal"]["cannot_tell"] == 3
    found = json.loads(dpal("verify", "clinic", "--json", cwd=tmp_path).stdout)
    assert found["holds"]
    plan = json.loads(dpal("report", "clinic", "--json", cwd=tmp_path).stdout)["plan"]
    assert abs(found["epsilon_spent"] - plan["epsilon"]) <= 1e-9
    assert found["epsilon_spent"] <= 8


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    done = dpal("demo", cwd=folder)
    assert "The cut is at" in done.stdout
    return folder


def test_the_demo_leaves_campaigns_to_look_at(demo: Path) -> None:
    assert (demo / "dpal-demo/accuracy.png").stat().st_size > 10_000
    for name in ("random-1", "cut-1", "random-4", "cut-4"):
        folder = f"dpal-demo/{name}"
        assert json.loads(dpal("status", folder, "--json", cwd=demo).stdout)["stage"] == "finished"
        assert json.loads(dpal("verify", folder, "--json", cwd=demo).stdout)["holds"]
        dpal("report", folder, cwd=demo)
        metrics = json.loads(dpal("status", folder, "--json", cwd=demo).stdout)["metrics"]
        # Far above chance, which is 10%: the noise does not drown everything.
        assert metrics[-1]["accuracy"] > 0.7


def test_a_folder_that_is_no_demo_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "dpal-demo").mkdir()
    (tmp_path / "dpal-demo/thesis.txt").write_text("mine")
    dpal("demo", cwd=tmp_path, codes=(2,))
    assert (tmp_path / "dpal-demo/thesis.txt").read_text() == "mine"


def test_dp_accounting_finds_the_demo_within_its_budget(demo: Path) -> None:
    """The training of every group, from the exported ledger alone. golden/test_cut_accounting.py adds the cuts."""
    pytest.importorskip("dp_accounting")
    from dp_accounting_ledger import group_accountants

    for name, phases in (("random-1", 1), ("cut-1", 2)):
        dpal("verify", f"dpal-demo/{name}", "--ledger", f"{name}.json", cwd=demo)
        ledger = json.loads((demo / f"{name}.json").read_text())
        assert len(ledger["phases"]) == phases
        spent = [accountant.get_epsilon(ledger["target_delta"]) for accountant in group_accountants(ledger)]
        assert 0.97 * ledger["target_epsilon"] < max(spent) <= ledger["target_epsilon"]


def test_dp_accounting_finds_released_selections_within_their_budget(tmp_path: Path) -> None:
    """From the exported ledger alone: every group, every sequence of scores, both directions."""
    pytest.importorskip("dp_accounting")
    from dp_accounting_ledger import delta_of_branches, group_accountants

    chosen = ("plan.initial_size=200", "plan.query_sizes=[150, 100, 50]", "plan.batch_size=64", "plan.epochs=3")
    settings = (*chosen, "plan.selections=released", "model.name=small-cnn", "oracle=simulated")
    dpal("init", "c", "--data", "digits", "--epsilon", 8, *(f"--set={setting}" for setting in settings), cwd=tmp_path)
    dpal("run", "c", cwd=tmp_path)
    dpal("verify", "c", "--ledger", "ledger.json", cwd=tmp_path)
    ledger = json.loads((tmp_path / "ledger.json").read_text())
    accountants = group_accountants(ledger)
    assert len(ledger["phases"]) == 4
    for accountant in accountants:
        assert accountant.get_epsilon(ledger["target_delta"]) <= ledger["target_epsilon"]
    worst = delta_of_branches(ledger, accountants, ledger["target_epsilon"])
    assert 0.5 * ledger["target_delta"] < worst <= ledger["target_delta"]


def run_until(process: subprocess.Popen[bytes], folder: Path, words: str) -> None:
    """Wait until the status says these words."""
    for _ in range(600):
        done = dpal("status", folder, "--json", cwd=folder.parent)
        if words in done.stdout:
            return
        assert process.poll() is None
        time.sleep(0.05)
    raise AssertionError(words)


def test_ctrl_c_loses_nothing(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    settings = [
        "plan.epochs=4000",
        "plan.labelling_budget=300",
        "plan.phases=2",
        "model.name=small-cnn",
        "oracle=simulated",
    ]
    flags = [word for each in settings for word in ("--set", each)]
    dpal("init", "c", "--data", "digits", "--epsilon", 8, "--set", "plan.initial_size=200", *flags, cwd=tmp_path)
    command = [sys.executable, "-c", "from dpal.cli import run; run()", "run", "c"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Whoever runs the tests in the background may have told everything below to ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    # However this ends, the process does.
    request.addfinalizer(process.kill)
    run_until(process, tmp_path / "c", '"interrupted"')
    # Readers work and a second writer is refused meanwhile.
    assert "is writing" in dpal("run", "c", cwd=tmp_path, codes=(4,)).stderr
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert b"Nothing is lost" in out + err
    status = json.loads(dpal("status", "c", "--json", cwd=tmp_path).stdout)
    assert status["internal"]["labelled"] == 200
    assert status["stage"] == "interrupted"


def test_a_seeded_campaign_says_not_private_everywhere(tmp_path: Path) -> None:
    flags = ["--set", "plan.labelling_budget=60", "--set", "plan.initial_size=60", "--set", "plan.phases=1"]
    flags += ["--set", "plan.epochs=1", "--set", "model.name=small-cnn", "--set", "oracle=simulated"]
    dpal("init", "c", "--data", "digits", *flags, "--seed", 7, cwd=tmp_path, codes=(2,))
    assert not (tmp_path / "c").exists()
    dpal("init", "c", "--data", "digits", *flags, "--seed", 7, "--not-private", cwd=tmp_path)
    for words in (("run", "c"), ("status", "c"), ("verify", "c"), ("export-model", "c", "--to", "m.safetensors")):
        assert "NOT PRIVATE" in dpal(*words, cwd=tmp_path).stdout, words
    dpal("report", "c", cwd=tmp_path)
    assert "nothing is private" in (tmp_path / "c/reports/report.html").read_text()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("status", "nowhere"), 5, "not a campaign"),
        (("run", "nowhere"), 5, "not a campaign"),
        (("init", "c"), 2, "--config"),
        (("init", "c", "--data", "cifar11"), 2, "cifar10"),
        (("init", "c", "--config", "none.yaml"), 2, "none.yaml"),
        (("init", "c", "--data", "digits", "--set", "plan.epsilon=3"), 2, "plan.epsilon"),
        (("init", "c", "--data", "digits", "--set", "model.name=resnet10"), 2, "resnet9"),
        (("labels", "import", "nowhere", "x.csv"), 5, "not a campaign"),
    ],
)
def test_errors_are_one_clear_message(tmp_path: Path, words: tuple[str, ...], code: int, message: str) -> None:
    done = dpal(*words, cwd=tmp_path, codes=(code,))
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_every_command_explains_itself(tmp_path: Path) -> None:
    names = (
        "init",
        "plan",
        "run",
        "give-up",
        "status",
        "verify",
        "report",
        "export-model",
        "demo",
        "labels",
        "epsilon",
        "show-plan",
    )
    text = dpal("--help", cwd=tmp_path).stdout
    for name in names:
        assert name in text
        assert len(dpal(name, "--help", cwd=tmp_path).stdout) > 200


def test_a_campaign_with_label_studio_is_told_how_to_send_and_fetch(tmp_path: Path) -> None:
    plan = {"target_epsilon": 8, "target_delta": 1e-4, "initial_size": 40, "query_sizes": [20], "batch_size": 16}
    plan |= {"epochs": 1, "planner": "step-amplification", "accountant": "rdp", "selection": "random"}
    labels = {"source": "label-studio", "url": "http://127.0.0.1:9", "token": "$NOT_SET"}
    document = {"data": {"source": "digits"}, "plan": plan, "model": {"name": "small-cnn"}, "labels": labels}
    (tmp_path / "c.yaml").write_text(json.dumps(document))
    dpal("init", "clinic", "--config", "c.yaml", cwd=tmp_path)
    done = dpal("run", "clinic", cwd=tmp_path, codes=(3,))
    assert "dpal labels sync clinic" in done.stdout and "dpal serve clinic" in done.stdout
