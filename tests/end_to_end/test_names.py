"""By the command line: what names and shapes would tell about records stays inside."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from command_line import checked as dpal
from pictures import write_png

COUNT = 24


def scans(folder: Path, count: int = COUNT, seed: int = 4) -> Path:
    """Grey images in folders called like their classes; the label can be seen in the image."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        kind = ("healthy", "ill")[number % 2]
        image = rng.integers(0, 120, (10, 10, 1), dtype=np.uint8) + np.uint8(100 * (number % 2))
        write_png(folder / kind / f"SMITH_{number:02d}.png", image)
    return folder


def configuration(folder: Path, **data: object) -> Path:
    """The options of a pool of scans, with some of them changed (None: left out)."""
    options = {"folder": "scans", "classes": ["healthy", "ill"], "size": 8, "channels": 1}
    own = {name: value for name, value in (options | data).items() if value is not None}
    free = own.pop("ids_are_free_of_content", False)
    document = {
        "data": {"source": "image-folder", "options": own, "ids_are_free_of_content": free},
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


def rows_of(table: Path) -> list[list[str]]:
    with table.open(newline="", encoding="utf-8-sig") as lines:
        return list(csv.reader(lines))


def everything_in(folder: Path) -> bytes:
    """All names and contents below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return b"\n".join(str(path.relative_to(folder)).encode() + b"\n" + path.read_bytes() for path in files)


def test_an_export_shows_neither_class_nor_path_and_its_labels_come_back(tmp_path: Path) -> None:
    scans(tmp_path / "scans")
    dpal("init", "c", "--config", configuration(tmp_path, labels_from_folders=True), cwd=tmp_path)
    rounds = 0
    known: set[str] = set()
    while dpal("run", "c", cwd=tmp_path, codes=(0, 3)).returncode == 3:
        rounds += 1
        out = tmp_path / f"round-{rounds}"
        dpal("labels", "export", "c", "--to", out.name, cwd=tmp_path)
        for word in (b"SMITH", b"scans"):
            assert word not in everything_in(out), word
        # What people may answer is listed, and says nothing about any record.
        assert "healthy" in (out / "README.txt").read_text(encoding="utf-8")
        (out / "README.txt").unlink()
        for word in (b"ill", b"healthy"):
            assert word not in everything_in(out), word
        header, *rows = rows_of(out / "labels.csv")
        assert header == ["id", "file", "label"]
        assert [row[0] for row in rows] == sorted({row[0] for row in rows})
        assert not known & {row[0] for row in rows}
        known |= {row[0] for row in rows}
        # A name that is none of ours, and an id of the pool itself: listed, and nothing is taken.
        (tmp_path / "wrong.csv").write_text("id,label\nhealthy/SMITH_00.png,healthy\n0000-0000-0000,ill\n")
        refused = dpal("labels", "import", "c", "wrong.csv", cwd=tmp_path, codes=(2,)).stderr
        assert "2 problem(s)" in refused
        assert "is an id of the pool" in refused
        assert "no record is called '0000-0000-0000'" in refused
        ids = json.loads(dpal("labels", "identify", "c", rows[0][0], rows[1][0], "--json", cwd=tmp_path).stdout)
        assert all((tmp_path / "scans" / record_id).is_file() for record_id in ids.values())
        nobody = dpal("labels", "identify", "c", "0000-0000-0000", cwd=tmp_path, codes=(2,)).stdout
        assert nobody == "0000-0000-0000: no record is called this\n"
        # Half of it, in capitals, with semicolons, as a spreadsheet would save it; then all of it.
        for name, some in (("half.csv", rows[::2]), ("all.csv", rows)):
            lines = [";".join([row[0].upper(), row[1], "ill"]) for row in some]
            (tmp_path / name).write_text("\r\n".join(["ID;File;Label", *lines]), encoding="utf-8-sig")
            counts = json.loads(dpal("labels", "import", "c", name, "--json", cwd=tmp_path).stdout)["internal"]
        assert counts["unchanged"] == len(rows[::2])
        assert counts["waiting_for_labels"] == 0
    assert rounds >= 1
    assert json.loads(dpal("verify", "c", "--json", cwd=tmp_path).stdout)["holds"]
    dpal("report", "c", "--public", "--to", "report.html", cwd=tmp_path)
    dpal("verify", "c", "--ledger", "ledger.json", cwd=tmp_path)
    dpal("export-model", "c", "--to", "model.safetensors", cwd=tmp_path)
    for name in ("report.html", "report.json", "ledger.json", "model.safetensors.json"):
        assert "SMITH" not in (tmp_path / name).read_text(encoding="utf-8"), name
    card = json.loads((tmp_path / "model.safetensors.json").read_text())
    assert card["inputs"][0]["shape"] == [1, 8, 8]
    assert card["model"]["options"]["channels"] == 1


def test_ids_stay_where_they_are_declared_free_of_content_and_data_may_move(tmp_path: Path) -> None:
    scans(tmp_path / "scans")
    dpal("init", "c", "--config", configuration(tmp_path, ids_are_free_of_content=True), cwd=tmp_path)
    dpal("run", "c", cwd=tmp_path, codes=(3,))
    (tmp_path / "scans").rename(tmp_path / "moved")
    file = tmp_path / "c/campaign.yaml"
    settled = file.read_text()
    file.write_text(settled.replace(str(tmp_path / "scans"), str(tmp_path / "moved")))
    dpal("labels", "export", "c", "--to", "out", cwd=tmp_path)
    header, *rows = rows_of(tmp_path / "out/labels.csv")
    assert all((tmp_path / "moved" / row[0]).is_file() for row in rows)
    (tmp_path / "back.csv").write_text("\n".join([",".join(header), *(f"{row[0]},,ill" for row in rows)]))
    counts = json.loads(dpal("labels", "import", "c", "back.csv", "--json", cwd=tmp_path).stdout)["internal"]
    assert counts["new"] == len(rows)
    # The declaration cannot be changed afterwards.
    file.write_text(file.read_text().replace("ids_are_free_of_content: true", "ids_are_free_of_content: false"))
    assert "differs from the configuration" in dpal("run", "c", cwd=tmp_path, codes=(5,)).stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": None, "labels_from_folders": True}, "give classes=[...]"),
        ({"channels": None}, "channels=1 for grey, 3 for colour"),
        ({"size": None}, "size=64 for 64 × 64 pixels"),
    ],
)
def test_what_is_not_stated_is_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    scans(tmp_path / "scans")
    done = dpal("init", "c", "--config", configuration(tmp_path, **change), cwd=tmp_path, codes=(2,))
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    assert "healthy" not in done.stderr
    assert not (tmp_path / "c").exists()
