"""Patients, not images, by the command line: from the configuration to the certificate, with experts' tables.

Commands run in this process, one after the other: others show that they work in processes of their own.
"""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from command_line import Done
from command_line import dpal_here as dpal
from pictures import write_png
from real_data import real_file

CLASSES = ["healthy", "ill"]
# How many images each patient has: one has more than are used.
SIZES = [1, 2, 5, 1, 3, 2, 1, 1, 2, 4, 1, 2, 1, 1, 3, 1, 2, 1, 1, 2]
AT_MOST = 3


def words_of(done: Done) -> str:
    return " ".join((done.stdout + done.stderr).split())


def scans(folder: Path) -> None:
    """SMITH07_2.png is the third image of patient 7; who is ill has bright images."""
    rng = np.random.default_rng(5)
    for patient, count in enumerate(SIZES):
        for number in range(count):
            image = rng.integers(0, 120, (10, 10, 1), dtype=np.uint8) + np.uint8(100 * (patient % 2))
            write_png(folder / f"SMITH{patient:02d}_{number}.png", image)


def truth(record_id: str) -> str:
    match = re.match(r"SMITH(\d+)_", record_id)
    assert match is not None
    return CLASSES[int(match.group(1)) % 2]


def write_config(folder: Path, **unit: object) -> Path:
    document = {
        "data": {
            "source": "image-folder",
            "options": {"folder": "scans", "classes": CLASSES, "size": 8, "channels": 1},
            "unit": {"pattern": "^([^_]+)_", "name": "patient", "records": AT_MOST} | unit,
        },
        "plan": {
            "target_epsilon": 8,
            "target_delta": 1e-3,
            "planner": "step-amplification",
            "initial_size": 8,
            "query_sizes": [6],
            "batch_size": 4,
            "epochs": 1,
            "accountant": "rdp",
        },
        "model": {"name": "small-cnn"},
    }
    path = folder / "clinic.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def table_in(folder: Path) -> list[dict[str, str]]:
    with (folder / "labels.csv").open(newline="", encoding="utf-8-sig") as lines:
        return list(csv.DictReader(lines))


def write_answers(file: Path, rows: list[dict[str, str]], answer: Callable[[dict[str, str]], dict[str, str]]) -> None:
    filled = [row | answer(row) for row in rows]
    with file.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.DictWriter(lines, list(filled[0]))
        writer.writeheader()
        writer.writerows(filled)


def labelled_to_the_end(folder: Path, answer: Callable[[str], dict[str, str]]) -> list[list[dict[str, str]]]:
    """Run the campaign c, answering every exported table, until it is finished; returns the tables."""
    rounds: list[list[dict[str, str]]] = []
    while dpal("run", "c", cwd=folder, codes=(0, 3)).returncode == 3:
        out = folder / f"round-{len(rounds) + 1}"
        dpal("labels", "export", "c", "--to", out.name, cwd=folder)
        rounds.append(rows := table_in(out))
        known = json.loads(dpal("labels", "identify", "c", *[row["id"] for row in rows], "--json", cwd=folder).stdout)
        write_answers(folder / "back.csv", rows, lambda row, known=known: answer(known[row["id"]]))
        counts = json.loads(dpal("labels", "import", "c", "back.csv", "--json", cwd=folder).stdout)["internal"]
        assert counts["waiting_for_labels"] == 0
    return rounds


def certified(folder: Path) -> dict[str, object]:
    assert json.loads(dpal("verify", "c", "--json", cwd=folder).stdout)["holds"]
    dpal("certificate", "c", "--to", "certificate.pdf", cwd=folder)
    dpal("verify", "certificate.pdf.json", cwd=folder)
    return json.loads((folder / "certificate.pdf.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("one_label", [False, True])
def test_a_campaign_that_protects_patients(tmp_path: Path, one_label: bool) -> None:
    scans(tmp_path / "scans")
    created = words_of(dpal("init", "c", "--config", write_config(tmp_path, one_label=one_label), cwd=tmp_path))
    assert "20 patients in the pool" in created
    assert "The promise is for one patient with all of their records together." in created
    rounds = labelled_to_the_end(
        tmp_path, lambda name: {"label": CLASSES[int(name[5:7]) % 2] if one_label else truth(name)}
    )
    assert len(rounds[0]) >= 8
    for rows in rounds:
        if one_label:
            # Every image of a patient in one line, and no more than are used.
            assert set(rows[0]) - {"id", "label"} <= {"file", *(f"file {number + 1}" for number in range(AT_MOST))}
        else:
            assert list(rows[0]) == ["id", "patient", "file", "label"]
            counts = [sum(other["patient"] == row["patient"] for other in rows) for row in rows]
            assert max(counts) <= AT_MOST
            assert [row["patient"] for row in rows] == sorted(row["patient"] for row in rows)
        assert not any("SMITH" in cell for row in rows for cell in row.values())
    certificate = certified(tmp_path)
    assert certificate["unit"] == "one patient"
    assert "for every single patient" in str(certificate["statement"])
    assert certificate["adjacency"] == "zero-out: one patient blanked out, with all records"
    assert not any("The unit of privacy is one record" in line for line in certificate["assumptions"])  # type: ignore[attr-defined]
    dpal("report", "c", "--public", "--to", "report.html", cwd=tmp_path)
    dpal("export-model", "c", "--to", "model.safetensors", cwd=tmp_path)
    assert json.loads((tmp_path / "model.safetensors.json").read_text())["unit"] == "patient"
    # How many images there are is nobody's business: of the pool, only the number of patients is told.
    for name in ("report.html", "report.json", "certificate.pdf.json", "model.safetensors.json"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "SMITH" not in text
        assert not re.search(rf"\b{sum(SIZES)}\b", text), name
    status = json.loads(dpal("status", "c", "--json", cwd=tmp_path).stdout)
    assert (status["pool_size"], status["unit"]) == (20, "patient")


def test_a_patient_withdraws(tmp_path: Path) -> None:
    scans(tmp_path / "scans")
    dpal("init", "c", "--config", write_config(tmp_path), cwd=tmp_path)
    dpal("run", "c", cwd=tmp_path, codes=(3,))
    dpal("labels", "export", "c", "--to", "before", cwd=tmp_path)
    names = [row["id"] for row in table_in(tmp_path / "before")]
    someone = json.loads(dpal("labels", "identify", "c", names[0], "--json", cwd=tmp_path).stdout)[names[0]]
    patient = someone.partition("_")[0]
    refused = dpal("withdraw", "c", "--unit", "nobody", cwd=tmp_path, codes=(2, 4, 5)).stderr
    assert "1 unit(s) are not in the campaign" in " ".join(refused.split())
    withdrawn = json.loads(dpal("withdraw", "c", "--unit", patient, "--json", cwd=tmp_path).stdout)
    assert withdrawn["withdrawn"] == SIZES[int(patient[5:])]
    for file in (tmp_path / "scans").glob(f"{patient}_*"):
        file.unlink()
    rounds = labelled_to_the_end(tmp_path, lambda name: {"label": truth(name)})
    known = json.loads(
        dpal("labels", "identify", "c", *[row["id"] for row in rounds[0]], "--json", cwd=tmp_path).stdout
    )
    assert patient not in {name.partition("_")[0] for name in known.values()}
    assert json.loads(dpal("verify", "c", "--json", cwd=tmp_path).stdout)["holds"]


def test_whom_a_record_belongs_to_cannot_change(tmp_path: Path) -> None:
    scans(tmp_path / "scans")
    dpal("init", "c", "--config", write_config(tmp_path), cwd=tmp_path)
    file = tmp_path / "c/campaign.yaml"
    settled = file.read_text(encoding="utf-8")
    file.write_text(settled.replace("^([^_]+)_", "^(SMITH0[0-9]|SMITH.)"), encoding="utf-8")
    refused = words_of(dpal("run", "c", cwd=tmp_path, codes=(5,)))
    assert "belong to another patient than when the campaign was created" in refused
    document = yaml.safe_load(settled)
    document["data"]["unit"] = None
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    assert "names no units, but the campaign was created with units" in words_of(
        dpal("run", "c", cwd=tmp_path, codes=(5,))
    )


def test_ids_that_look_like_patients_are_noticed(tmp_path: Path) -> None:
    scans(tmp_path / "scans")
    config = yaml.safe_load(write_config(tmp_path).read_text(encoding="utf-8"))
    del config["data"]["unit"]
    (tmp_path / "records.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    created = words_of(dpal("init", "r", "--config", "records.yaml", cwd=tmp_path))
    assert "look as if several records belonged to one person" in created
    assert "^([^_]+)_" in created
    # And nobody of the pool may be in the held-out set.
    options = {**config["data"]["options"], "folder": "public", "labels_from_folders": True}
    write_png(tmp_path / "public/ill/SMITH03_9.png", np.full((10, 10, 1), 7, dtype=np.uint8))
    write_png(tmp_path / "public/healthy/JONES_1.png", np.full((10, 10, 1), 9, dtype=np.uint8))
    shared = yaml.safe_load(write_config(tmp_path).read_text(encoding="utf-8"))
    shared["evaluation"] = {"source": "image-folder", "options": options, "is_public": True}
    (tmp_path / "shared.yaml").write_text(yaml.safe_dump(shared), encoding="utf-8")
    refused = words_of(dpal("init", "s", "--config", "shared.yaml", cwd=tmp_path, codes=(2, 4, 5)))
    assert "The held-out set shares 1 unit(s) (patient) with the pool: 'SMITH03'" in refused
    assert not (tmp_path / "s").exists()


def real_config(folder: Path, options: dict[str, object], unit: dict[str, object], model: str = "small-cnn") -> Path:
    document = {
        "data": {"source": "table", "options": options, "unit": unit},
        "plan": {
            "target_epsilon": 8,
            "planner": "step-amplification",
            "initial_size": 60,
            "query_sizes": [40],
            "epochs": 1,
            "accountant": "rdp",
        },
        "model": {"name": model},
    }
    path = folder / "real.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def columns_of(file: Path) -> dict[str, list[object]]:
    parquet = pytest.importorskip("pyarrow.parquet")
    return parquet.read_table(file, columns=["id", "label"]).to_pydict()


def test_real_chest_xrays_by_patient(tmp_path: Path) -> None:
    file = real_file("chestxray_64/train.parquet")
    known = columns_of(file)
    findings = [f"finding {number}" for number in range(1, 15)]
    labels = dict(zip(known["id"], known["label"], strict=True))
    options = {
        "file": str(file),
        "image": "image",
        "id_column": "id",
        "classes": findings,
        "multi_label": True,
        "size": 16,
        "channels": 1,
    }
    unit = {"pattern": "^([0-9]+)_", "name": "patient", "records": 3}
    dpal("init", "c", "--config", real_config(tmp_path, options, unit), cwd=tmp_path)
    patients = {str(name).partition("_")[0] for name in known["id"]}
    assert json.loads(dpal("status", "c", "--json", cwd=tmp_path).stdout)["pool_size"] == len(patients)
    rounds = labelled_to_the_end(
        tmp_path,
        lambda name: dict(zip(findings, map(str, labels[name]), strict=True)),  # type: ignore[call-overload]
    )
    assert 60 <= len(rounds[0]) <= 180
    assert certified(tmp_path)["unit"] == "one patient"


def test_real_skin_lesions_by_lesion(tmp_path: Path) -> None:
    file, lesions = real_file("skinlesion_64/train.parquet"), real_file("skinlesion_64/lesions.csv")
    known = columns_of(file)
    names = ["akiec", "bcc", "bkl", "df", "mel", "nv", "vasc"]
    labels = {name: names[int(str(label))] for name, label in zip(known["id"], known["label"], strict=True)}
    options = {
        "file": str(file),
        "image": "image",
        "id_column": "id",
        "classes": names,
        "size": 16,
        "channels": 3,
    }
    unit = {"file": str(lesions), "file_unit_column": "lesion", "name": "lesion", "records": 6, "one_label": True}
    dpal("init", "c", "--config", real_config(tmp_path, options, unit), cwd=tmp_path)
    assert json.loads(dpal("status", "c", "--json", cwd=tmp_path).stdout)["pool_size"] == 5976
    with lesions.open(newline="", encoding="utf-8") as lines:
        images = {row["lesion"]: row["id"] for row in csv.DictReader(lines) if row["id"] in labels}
    rounds = labelled_to_the_end(tmp_path, lambda lesion: {"label": labels[images[lesion]]})
    assert len(rounds[0]) == 60
    assert certified(tmp_path)["unit"] == "one lesion"
