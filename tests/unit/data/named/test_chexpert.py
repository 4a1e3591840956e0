"""CheXpert from a tiny table and images."""

import csv
from pathlib import Path

import numpy as np
import pytest
from pictures import pixels
from PIL import Image

from dpal.data import load_dataset
from dpal.data.named.chexpert import CLASSES as FINDINGS
from dpal.errors import BadData, MissingData


def chexpert_folder(folder: Path, rows: list[tuple[str, dict[str, str]]]) -> Path:
    folder.mkdir(exist_ok=True)
    with (folder / "train.csv").open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(["Path", "Sex", "Age", "Frontal/Lateral", "AP/PA", *FINDINGS])
        for number, (path, findings) in enumerate(rows):
            cells = [findings.get(finding, "") for finding in FINDINGS]
            writer.writerow([f"CheXpert-v1.0-small/{path}", "Male", 60, "Frontal", "AP", *cells])
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels(number, side=390, channels=1)[:320, :, 0]).save(folder / path, quality=95)
    return folder


def test_chexpert_maps_uncertain_labels_as_the_paper_does(tmp_path: Path) -> None:
    uncertain = dict.fromkeys(FINDINGS, "-1.0")
    folder = chexpert_folder(
        tmp_path / "chexpert",
        [
            ("train/patient00001/study1/view1_frontal.jpg", {"No Finding": "1.0", "Edema": "0.0"}),
            ("train/patient00002/study1/view1_frontal.jpg", uncertain),
        ],
    )
    pool = load_dataset("chexpert", folder=folder)
    assert pool.ids.tolist()[0] == "train/patient00001/study1/view1_frontal.jpg"
    assert pool.multi_label
    assert pool.labels is not None
    assert pool.labels[0].tolist() == [1.0] + [0.0] * 13
    expected = [0.8 if name in ("Atelectasis", "Edema", "Pleural Effusion") else 0.2 for name in FINDINGS]
    assert np.allclose(pool.labels[1], expected)
    assert pool.records.read(np.arange(2)).shape == (2, 1, 192, 192)
    # Built once: from now on the images themselves are not needed.
    (built,) = (folder / "dpal-resized").iterdir()
    modified = built.stat().st_mtime_ns
    assert load_dataset("chexpert", folder=folder).records.read(np.arange(2)).shape == (2, 1, 192, 192)
    assert built.stat().st_mtime_ns == modified
    assert load_dataset("chexpert", folder=folder, size=64).records.read(np.arange(2)).shape == (2, 1, 64, 64)


def test_chexpert_bad_input(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match=r"Accept its terms.*train\.csv"):
        load_dataset("chexpert", folder=tmp_path)
    folder = chexpert_folder(tmp_path / "c", [("train/p1/view1.jpg", {"Edema": "2.0"})])
    with pytest.raises(BadData, match=r"'train/p1/view1\.jpg'"):
        load_dataset("chexpert", folder=folder)
    folder = chexpert_folder(tmp_path / "d", [("train/p1/view1.jpg", {}), ("train/p2/view1.jpg", {})])
    (folder / "train/p2/view1.jpg").write_bytes(b"broken")
    with pytest.raises(BadData, match=r"'train/p2/view1\.jpg'"):
        load_dataset("chexpert", folder=folder)
    assert list((folder / "dpal-resized").iterdir()) == []


def test_a_row_of_chexpert_that_is_cut_short_is_not_a_row_of_absent_findings(tmp_path: Path) -> None:
    folder = chexpert_folder(tmp_path / "c", [("train/p1/view1.jpg", {"Support Devices": "1.0"})])
    whole = (folder / "train.csv").read_text()
    (folder / "train.csv").write_text(whole[: whole.rindex(",")])
    with pytest.raises(BadData, match="Line 2"):
        load_dataset("chexpert", folder=folder)
