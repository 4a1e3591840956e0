"""A campaign whose training diverges, command by command: what is said, the way out, and that everything holds."""

import json
from pathlib import Path

import pytest
from command_line import checked as dpal
from safetensors.numpy import load_file

SETTINGS = (
    "plan.initial_size=60",
    "plan.planner=step-amplification",
    "plan.query_sizes=[30, 20]",
    "plan.batch_size=20",
    "plan.epochs=4",
    "plan.accountant=rdp",
    "model.name=small-cnn",
    "oracle=simulated",
    "training.optimizer=sgd",
    "training.optimizer_options={weight_decay: 1.0}",
)
# Every step multiplies the weights by a thousand: the single step that dpal init tries is not enough to tell.
ABSURD = "training.learning_rate=1000"
SOUND = "training.learning_rate=0.01"


def words(text: str) -> str:
    return " ".join(text.split())


def init(folder: Path, *settings: str) -> None:
    flags = [word for each in (*SETTINGS, *settings) for word in ("--set", each)]
    dpal("init", "c", "--data", "digits", "--epsilon", 8, *flags, cwd=folder)


def status(folder: Path) -> dict[str, object]:
    return json.loads(dpal("status", "c", "--json", cwd=folder).stdout)


def test_a_phase_that_diverges_is_given_up_and_the_campaign_goes_on(tmp_path: Path) -> None:
    init(tmp_path, ABSURD)
    for _ in range(2):
        # Again and again the same: the charge stays, and the message says the way out.
        said = words(dpal("run", "c", cwd=tmp_path, codes=(2,)).stderr)
        assert "diverged" in said
        assert "dpal give-up CAMPAIGN --set training.learning_rate=" in said
        assert "Phase 1 is charged and not finished" in said
        assert "dpal give-up c" in said
        assert status(tmp_path)["stage"] == "interrupted"
    spent = status(tmp_path)["epsilon_spent"]
    refused = dpal("give-up", "c", "--set", "plan.target_epsilon=9", cwd=tmp_path, codes=(2,))
    assert "section training" in words(refused.stderr)
    done = dpal("give-up", "c", "--reason", "it diverges", "--set", SOUND, cwd=tmp_path)
    assert "Phase 1 is given up: its charge still counts" in words(done.stdout)
    assert "certified again" in words(done.stdout)
    assert "dpal run c" in done.stdout
    after = status(tmp_path)
    assert after["epsilon_spent"] == spent
    assert after["phases_given_up"] == [1]
    assert json.loads(dpal("verify", "c", "--json", cwd=tmp_path).stdout)["holds"]
    dpal("export-model", "c", "--to", "m.safetensors", cwd=tmp_path, codes=(2,))
    dpal("run", "c", cwd=tmp_path)
    end = status(tmp_path)
    assert (end["stage"], end["phases_done"], end["phases_given_up"]) == ("finished", 2, [1])
    assert "phase 1 given up" in dpal("status", "c", cwd=tmp_path).stdout
    found = json.loads(dpal("verify", "c", "--json", cwd=tmp_path).stdout)
    assert found["holds"]
    dpal("export-model", "c", "--to", "m.safetensors", cwd=tmp_path)
    card = json.loads((tmp_path / "m.safetensors.json").read_text())
    assert (card["phase"], card["phases_given_up"]) == (3, [1])
    assert card["epsilon"] == found["epsilon_spent"] == end["epsilon_spent"]
    assert load_file(tmp_path / "m.safetensors")
    dpal("certificate", "c", "--to", "c.pdf", cwd=tmp_path)
    dpal("verify", "c.pdf.json", cwd=tmp_path)
    dpal("report", "c", cwd=tmp_path)
    assert "Phase 1 was given up" in (tmp_path / "c/reports/report.html").read_text()


def test_the_last_phase_is_given_up_and_the_one_before_is_exported(tmp_path: Path) -> None:
    """Sound settings, until they are made absurd with the first phase that is given up."""
    init(tmp_path, ABSURD)
    dpal("run", "c", cwd=tmp_path, codes=(2,))
    dpal("give-up", "c", "--set", SOUND, cwd=tmp_path)
    # Die in phase 3, the last: as if it did not fit into memory.
    killed_in_the_last_phase(tmp_path)
    done = json.loads(dpal("give-up", "c", "--json", cwd=tmp_path).stdout)
    assert (done["phase"], done["phases_left"], done["settings_changed"]) == (3, 0, False)
    dpal("run", "c", cwd=tmp_path)
    assert status(tmp_path)["stage"] == "finished"
    assert json.loads(dpal("verify", "c", "--json", cwd=tmp_path).stdout)["holds"]
    dpal("export-model", "c", "--to", "m.safetensors", cwd=tmp_path)
    card = json.loads((tmp_path / "m.safetensors.json").read_text())
    assert (card["phase"], card["phases_given_up"]) == (2, [1, 3])


def killed_in_the_last_phase(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPAL_KILL_AT", "train.charged:2")
        dpal("run", "c", cwd=folder, codes=(-9,))
    assert status(folder)["next_step"] == "train phase 3"


def test_with_nothing_open_there_is_nothing_to_give_up(tmp_path: Path) -> None:
    init(tmp_path, SOUND)
    for _ in range(2):
        refused = words(dpal("give-up", "c", cwd=tmp_path, codes=(2,)).stderr)
        assert "No training phase is under way" in refused
        assert "Nothing was changed" in refused
        dpal("run", "c", cwd=tmp_path)
    assert status(tmp_path)["phases_given_up"] == []


def test_numbers_about_private_records_are_marked_wherever_they_are_printed(tmp_path: Path) -> None:
    init(tmp_path, SOUND, "oracle=files")
    shown = words(dpal("run", "c", cwd=tmp_path, codes=(3,)).stdout)
    public, internal = shown.split("internal (not covered by the promise; do not pass on)")
    assert "60 missing" in internal
    assert "missing" not in public
    for text in ("given", "skipped", "cannot tell", "corrected", "last change"):
        assert text not in public
    assert words(dpal("status", "c", cwd=tmp_path).stdout).split("internal (")[0] in shown + " "
    document = status(tmp_path)
    assert document["internal"]["waiting_for_labels"] == 60
    assert not {"labelled", "waiting_for_labels", "skipped", "cannot_tell", "corrected", "resumed"} & set(document)
    assert "60" not in document["next_step"]
    assert "internal" in dpal("labels", "export", "c", "--to", "week", cwd=tmp_path).stdout
    lines = (tmp_path / "week/labels.csv").read_text(encoding="utf-8-sig").splitlines()
    (tmp_path / "few.csv").write_text("id,label\n" + "".join(f"{line.split(',')[0]},3\n" for line in lines[1:11]))
    said = words(dpal("labels", "import", "c", "few.csv", cwd=tmp_path).stdout)
    assert "10 new, 0 corrected, 0 unchanged; 50 still missing (internal: do not pass these numbers on)" in said
    again = json.loads(dpal("labels", "import", "c", "few.csv", "--json", cwd=tmp_path).stdout)
    assert again["internal"] == {"new": 0, "corrected": 0, "unchanged": 10, "withdrawn": 0, "waiting_for_labels": 50}
    assert set(again) == {"internal", "next_step"}
    assert "50 records are left out for now (internal" in words(dpal("labels", "close", "c", cwd=tmp_path).stdout)
    dpal("run", "c", cwd=tmp_path, codes=(3,))
    dpal("export-model", "c", "--to", "m.safetensors", cwd=tmp_path)
    # Neither the card nor the checks hold a number of labels (10 given, 50 left out) or of facts.
    card = json.loads((tmp_path / "m.safetensors.json").read_text())
    assert not {"internal", "labelled", "resumed", "skipped"} & set(card)
    assert 10 not in [value for name, value in card.items() if name != "classes"]
    details = " ".join(
        check["detail"] for check in json.loads(dpal("verify", "c", "--json", cwd=tmp_path).stdout)["checks"]
    )
    assert " 50 " not in details
    assert "facts [" not in details
