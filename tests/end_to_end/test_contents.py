"""Files that are edited, sorted, exchanged, lost or taken back in the life of a campaign, by the command line."""

import csv
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from command_line import checked
from pictures import write_png
from safetensors.numpy import load_file
from tiny_bert import WORDS, write_tiny_bert

from dpal.campaign.campaign import Campaign
from dpal.campaign.fault_points import VARIABLE

DAMAGED, KILLED = 5, -signal.SIGKILL


def dpal(
    *words: object, cwd: Path, codes: tuple[int, ...] = (0,), kill_at: str = ""
) -> subprocess.CompletedProcess[str]:
    return checked(*words, cwd=cwd, codes=codes, environment=os.environ | {VARIABLE: kill_at})


def refused(*words: object, cwd: Path, code: int = DAMAGED) -> str:
    """The message of a command that is refused, with nothing charged or changed by it."""
    before = Campaign(cwd / "c").state()
    message = dpal(*words, cwd=cwd, codes=(code,)).stderr
    assert Campaign(cwd / "c").state() == before
    return message


def holds(cwd: Path) -> bool:
    return json.loads(dpal("verify", "c", "--json", cwd=cwd).stdout)["holds"]


# A pool as small as this one would get a plan without a query.
PLAN = """\
plan:
  planner: step-amplification
  target_epsilon: 8
  initial_size: 10
  query_sizes: [6]
  batch_size: 4
  epochs: 1
  accountant: rdp
"""


def write_notes(file: Path, rows: list[list[str]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as lines:
        csv.writer(lines).writerows(rows)


def test_a_table_that_is_sorted_or_edited(tmp_path: Path) -> None:
    write_tiny_bert(tmp_path / "bert")
    words = WORDS[5:]
    rows = [["note"]] + [[f"{words[n % 8]} {words[n // 8]} {words[(3 * n) % 8]}"] for n in range(40)]
    write_notes(tmp_path / "notes.csv", rows)
    (tmp_path / "c.yaml").write_text(
        f"""
data:
  source: table
  options: {{file: notes.csv, text: note, classes: ["no", "yes"]}}
  ids_are_free_of_content: true
text: {{tokenizer: bert, max_length: 8}}
model: {{name: text-classifier, options: {{name: bert}}}}
{PLAN}
"""
    )
    dpal("init", "c", "--config", "c.yaml", cwd=tmp_path)
    dpal("run", "c", cwd=tmp_path, codes=(3,))
    # Sorted by a spreadsheet: without an id column every row is another record now.
    write_notes(tmp_path / "notes.csv", [rows[0], *sorted(rows[1:])])
    for command in (("run", "c"), ("labels", "export", "c", "--to", "week-1")):
        message = refused(*command, cwd=tmp_path)
        assert "row numbers" in message and "Nothing was charged" in message
    assert not (tmp_path / "week-1").exists()
    # One row edited: it is named.
    edited = [list(row) for row in rows]
    edited[17][0] += " ."
    write_notes(tmp_path / "notes.csv", edited)
    assert "1 record(s) are not as they were when the campaign was created: '17'" in refused("run", "c", cwd=tmp_path)
    # As it was, the campaign goes on; also without the record, whose row stays in place.
    write_notes(tmp_path / "notes.csv", rows)
    dpal("run", "c", cwd=tmp_path, codes=(3,))
    write_notes(tmp_path / "notes.csv", edited)
    assert "do not remove the rows" in dpal("withdraw", "c", "17", cwd=tmp_path).stdout
    while dpal("run", "c", cwd=tmp_path, codes=(0, 3)).returncode == 3:
        shutil.rmtree(tmp_path / "week", ignore_errors=True)
        dpal("labels", "export", "c", "--to", "week", cwd=tmp_path)
        with (tmp_path / "week/labels.csv").open(newline="", encoding="utf-8-sig") as lines:
            table = list(csv.DictReader(lines))
        assert "17" not in {row["id"] for row in table}
        lines = [f"{row['id']},{'yes' if 'fever' in row['text'] else 'no'}" for row in table]
        (tmp_path / "answers.csv").write_text("\n".join(["id,label", *lines, "17,yes"]) + "\n")
        told = dpal("labels", "import", "c", "answers.csv", cwd=tmp_path).stdout
        assert "1 answers for withdrawn records were ignored" in told
    assert holds(tmp_path)


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    """A campaign on a folder of images, not run yet."""
    for number in range(40):
        label = "ill" if number % 2 else "healthy"
        image = np.random.default_rng(number).integers(60 * (number % 2), 160, (8, 8, 1)).astype(np.uint8)
        write_png(tmp_path / f"scans/{label}/{number:02d}.png", image)
    (tmp_path / "c.yaml").write_text(
        f"""
data:
  source: image-folder
  options: {{folder: scans, classes: [healthy, ill], labels_from_folders: true, size: 8, channels: 1}}
model: {{name: small-cnn}}
oracle: simulated
{PLAN}
"""
    )
    dpal("init", "c", "--config", "c.yaml", cwd=tmp_path)
    return tmp_path


def finishes(cwd: Path) -> None:
    dpal("run", "c", cwd=cwd)
    assert Campaign(cwd / "c").state().finished
    assert holds(cwd)
    dpal("export-model", "c", "--to", "model.safetensors", cwd=cwd)
    assert load_file(cwd / "model.safetensors")["classifier.bias"].shape == (2,)


def test_an_image_is_replaced_and_another_breaks(scans: Path) -> None:
    replaced, broken = scans / "scans/ill/07.png", scans / "scans/ill/09.png"
    before = replaced.read_bytes()
    dpal("run", "c", cwd=scans, kill_at="select.recorded", codes=(KILLED,))
    shutil.copy(scans / "scans/healthy/06.png", replaced)
    message = refused("run", "c", cwd=scans)
    assert "'ill/07.png'" in message and "Nothing was charged" in message
    replaced.write_bytes(before)
    broken.write_bytes(broken.read_bytes()[:40])
    message = refused("run", "c", cwd=scans)
    assert "can no longer be read: 'ill/09.png'" in message
    assert f"dpal withdraw {scans / 'c'} ill/09.png" in message
    # Removed, as one would: the same advice.
    broken.unlink()
    assert f"dpal withdraw {scans / 'c'} ill/09.png" in refused("run", "c", cwd=scans)
    message = refused("withdraw", "c", "ill/09.png", "ill/9.png", cwd=scans, code=2)
    assert "'ill/9.png'" in message and "No record was withdrawn" in message
    dpal("withdraw", "c", "ill/09.png", "--reason", "the file is broken", cwd=scans)
    finishes(scans)


def test_a_consent_is_withdrawn_in_the_middle_and_while_a_phase_is_under_way(scans: Path) -> None:
    dpal("run", "c", cwd=scans, kill_at="train.recorded", codes=(KILLED,))
    (scans / "ids.txt").write_text("healthy/02.png\nill/03.png\n")
    done = dpal("withdraw", "c", "--from-file", "ids.txt", "--json", cwd=scans)
    assert json.loads(done.stdout) == {"withdrawn": 2, "withdrawn_before": 0}
    for name in ("healthy/02.png", "ill/03.png"):
        (scans / "scans" / name).unlink()
    # The second phase is charged and dies; then somebody it is training on withdraws.
    dpal("run", "c", cwd=scans, kill_at="train.step:2", codes=(KILLED,))
    charges = Campaign(scans / "c").state().charges
    dpal("withdraw", "c", "healthy/04.png", "healthy/02.png", cwd=scans)
    (scans / "scans/healthy/04.png").unlink()
    assert holds(scans)
    finishes(scans)
    state = Campaign(scans / "c").state()
    assert state.charges == charges
    assert state.withdrawn == {"healthy/02.png", "ill/03.png", "healthy/04.png"}


@pytest.mark.parametrize("point", ["train.produced", "train.checkpoint-written"])
def test_a_model_is_moved_away_and_a_record_edited_before_the_phase_is_resumed(scans: Path, point: str) -> None:
    """Trained again with the same noise, the two models would differ by that record's gradient alone."""
    dpal("run", "c", cwd=scans, kill_at=point, codes=(KILLED,))
    (model,) = (path for path in (scans / "c/checkpoints").iterdir() if "phase-1" in path.name)
    content = model.read_bytes()
    model.rename(scans / "seen")
    record = scans / "scans/ill/11.png"
    before = record.read_bytes()
    write_png(record, np.zeros((8, 8, 1), dtype=np.uint8))
    assert "'ill/11.png'" in refused("run", "c", cwd=scans)
    record.write_bytes(before)
    message = refused("run", "c", cwd=scans)
    assert "a second model on one charge" in message and "Restore it from a backup" in message
    assert json.loads(dpal("verify", "c", "--json", cwd=scans, codes=(DAMAGED,)).stdout)["holds"] is False
    (scans / "seen").rename(model)
    finishes(scans)
    assert (scans / "c/checkpoints/phase-1.safetensors").read_bytes() == content


def test_a_held_out_set_that_is_the_pool(scans: Path) -> None:
    text = (scans / "c.yaml").read_text()
    options = "folder: FOLDER, classes: [healthy, ill], labels_from_folders: true, size: 8, channels: 1"
    shutil.copytree(scans / "scans/ill", scans / "others/ill/copied")
    for folder, message in (("scans", "the contents of 40 record(s)"), ("others", "the contents of 20 record(s)")):
        evaluation = f"evaluation: {{source: image-folder, is_public: true, options: {{{options}}}}}\n"
        (scans / "d.yaml").write_text(text + evaluation.replace("FOLDER", folder))
        done = dpal("init", "d", "--config", "d.yaml", cwd=scans, codes=(2,))
        assert message in done.stderr and "public records" in done.stderr
        assert not (scans / "d").exists()
