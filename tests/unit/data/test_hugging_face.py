import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import pixels, png, scans_in

from dpal.data import from_hugging_face
from dpal.data.records import TextRecords
from dpal.errors import BadData, InvalidArgument, MissingData

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    datasets = pytest.importorskip("datasets")


def image_dataset() -> "datasets.Dataset":
    features = datasets.Features(
        {
            "key": datasets.Value("string"),
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=["cat", "dog"]),
        }
    )
    rows = {
        "key": ["a", "b", "c"],
        "image": [{"bytes": png(pixels(number)), "path": None} for number in range(3)],
        "label": [0, 1, 0],
    }
    return datasets.Dataset.from_dict(rows, features=features)


def test_a_saved_dataset_brings_its_class_names(tmp_path: Path) -> None:
    datasets.DatasetDict({"train": image_dataset()}).save_to_disk(tmp_path / "saved")
    columns = {"image": "image", "label": "label", "id_column": "key"}
    pool = from_hugging_face(tmp_path / "saved", split="train", size=12, channels=3, **columns)
    assert pool.classes == ("cat", "dog")
    assert pool.ids.tolist() == ["a", "b", "c"]
    assert pool.labels is not None
    assert pool.labels.tolist() == [0, 1, 0]
    expected = np.stack([pixels(number).transpose(2, 0, 1) for number in range(3)])
    assert np.array_equal(pool.records.read(np.arange(3)), expected)


def test_a_folder_of_data_files(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.csv").write_text("note,urgent\nfever,1\ncough,0\n")
    pool = from_hugging_face(tmp_path / "data", split="train", text="note", label="urgent", classes=["no", "yes"])
    assert isinstance(pool.records, TextRecords)
    assert pool.records.texts == [("fever",), ("cough",)]
    assert pool.labels is not None
    assert pool.labels.tolist() == [1, 0]
    with pytest.raises(InvalidArgument, match="classes"):
        from_hugging_face(tmp_path / "data", split="train", text="note", label="urgent")
    with pytest.raises(BadData, match=r"no column nota.*note, urgent"):
        from_hugging_face(tmp_path / "data", split="train", text="nota", classes=2)
    with pytest.raises(MissingData, match="split 'test'"):
        from_hugging_face(tmp_path / "data", split="test", text="note", classes=2)


def test_a_name_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="cannot be opened"):
        from_hugging_face(tmp_path / "nothing", split="train", text="note", classes=2)


def test_the_librarys_mark_for_no_class_is_no_label(tmp_path: Path) -> None:
    features = datasets.Features({"t": datasets.Value("string"), "y": datasets.ClassLabel(names=["no", "yes"])})
    rows = datasets.Dataset.from_dict({"t": ["a", "b"], "y": [-1, 1]}, features=features, split="train")
    rows.save_to_disk(tmp_path / "saved")
    pool = from_hugging_face(tmp_path / "saved", split="train", text="t", label="y")
    assert pool.labels is not None
    assert pool.labels.tolist() == [-1, 1]
    # A saved part is not another one.
    with pytest.raises(MissingData, match="split 'test'"):
        from_hugging_face(tmp_path / "saved", split="test", text="t", label="y")


@pytest.mark.parametrize(("name", "content"), [("train.csv", 'a,b\n1,2\n3,4,5,"\n'), ("data.py", "raise SystemExit")])
def test_folders_that_cannot_be_read(tmp_path: Path, name: str, content: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / name).write_text(content)
    with pytest.raises(MissingData, match="cannot be opened"):
        from_hugging_face(folder, split="train", text="a", classes=2)


def test_classes_that_a_library_collected_from_folders_are_not_taken(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    options: dict[str, Any] = {"split": "train", "image": "image", "label": "label", "size": 8, "channels": 1}
    with pytest.raises(InvalidArgument, match=r"classes=\[\.\.\.\]"):
        from_hugging_face(scans_in(tmp_path / "scans"), **options)
    for classes in (["healthy", "ill"], ["ill", "healthy"]):
        stated = from_hugging_face(tmp_path / "scans", classes=classes, **options)
        assert stated.labels is not None
        assert [classes[label] for label in stated.labels] == ["healthy", "ill"]
