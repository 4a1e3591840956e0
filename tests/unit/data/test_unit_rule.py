"""Units by a column, a second file, a pattern on ids or a function."""

from pathlib import Path

import numpy as np
import pytest
from pictures import FORM, folder_of

from dpal.data import Pool, UnitRule, from_arrays
from dpal.data.sources import open_pool, with_absolute_file
from dpal.data.unit_rule import in_no_unit_of_a_pool
from dpal.errors import BadData, DpalError, InvalidArgument, MissingData

IDS = ["7_a", "7_b", "12_a", "x_1"]


def pool() -> Pool:
    return from_arrays(np.zeros((4, 1)), classes=2, ids=IDS)


def units_by(**rule: object) -> list[str]:
    units = UnitRule(**rule).applied(pool()).units  # type: ignore[arg-type]
    assert units is not None
    return units.of_records.tolist()


def first_part(record_id: str) -> str:
    return record_id.partition("_")[0]


def test_a_patterns_first_group_or_all_of_it_names_the_unit() -> None:
    assert units_by(pattern="^([^_]+)_") == ["7", "7", "12", "x"]
    assert units_by(pattern="^[^_]+") == ["7", "7", "12", "x"]
    with pytest.raises(BadData, match=r"1 record\(s\) of arrays have no unit: 'x_1'"):
        units_by(pattern="^([0-9]+)_")
    with pytest.raises(InvalidArgument, match="regular expression"):
        units_by(pattern="(")


def test_a_second_file_names_the_units(tmp_path: Path) -> None:
    file = tmp_path / "patients.csv"
    file.write_text("id,unit\n12_a,Q\n7_a,P\n7_b,P\nx_1,R\nother,S\n")
    assert units_by(file=str(file)) == ["P", "P", "Q", "R"]
    file.write_text("image,who\n12_a,Q\n7_a,P\n7_b,P\nx_1,R\n")
    assert units_by(file=str(file), file_id_column="image", file_unit_column="who") == ["P", "P", "Q", "R"]
    with pytest.raises(BadData, match="no column id, unit; its columns are image, who"):
        units_by(file=str(file))
    file.write_text("id,unit\n12_a,Q\n7_a,P\n7_a,Q\n")
    with pytest.raises(BadData, match="two units for the record '7_a'"):
        units_by(file=str(file))
    file.write_text("id,unit\n12_a,Q\n7_a,\n")
    with pytest.raises(BadData, match=r"3 record\(s\) of arrays have no unit: '7_a', '7_b', 'x_1'"):
        units_by(file=str(file))
    with pytest.raises(MissingData, match=r"nowhere\.csv"):
        units_by(file="nowhere.csv")
    with pytest.raises(InvalidArgument, match=r"patients\.xml"):
        units_by(file="patients.xml")


def test_a_function_by_its_import_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    assert units_by(function="test_unit_rule:first_part") == ["7", "7", "12", "x"]


def test_a_column_of_the_records_own_table(tmp_path: Path) -> None:
    table = tmp_path / "notes.csv"
    table.write_text("id,text,patient\na,one,P\nb,two,Q\nc,three,P\n")
    options = {"file": str(table), "text": "text", "id_column": "id", "classes": ["x", "y"]}
    opened = open_pool("table", options, UnitRule(column="patient", name="patient", records=3, one_label=True))
    assert opened.units is not None
    assert opened.units.of_records.tolist() == ["P", "Q", "P"]
    assert opened.units.facts() == {"word": "patient", "rows": 3, "one_label": True}
    with pytest.raises(BadData, match="no column doctor"):
        open_pool("table", options, UnitRule(column="doctor"))
    with pytest.raises(InvalidArgument, match=r"data\.unit\.file or data\.unit\.pattern"):
        open_pool("digits", {}, UnitRule(column="patient"))


def test_folders_named_after_classes_are_no_part_of_a_unit(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, ["ill/7_a.png", "healthy/7_b.png", "healthy/12_a.png"])
    options = {"folder": str(folder), "labels_from_folders": True, "classes": ["healthy", "ill"], **FORM}
    opened = open_pool("image-folder", options, UnitRule(pattern="^([^_]+)_"))
    assert opened.units is not None
    assert dict(zip(opened.ids.tolist(), opened.units.of_records.tolist(), strict=True)) == {
        "healthy/12_a.png": "12",
        "healthy/7_b.png": "7",
        "ill/7_a.png": "7",
    }


@pytest.mark.parametrize("rule", [{}, {"pattern": "a", "file": "b.csv"}, {"name": "patient"}])
def test_exactly_one_way_is_named(rule: dict[str, str]) -> None:
    with pytest.raises(DpalError, match="exactly one of column, file, pattern, function"):
        UnitRule(**rule)  # type: ignore[arg-type]


def test_a_files_path_is_made_absolute(tmp_path: Path) -> None:
    assert with_absolute_file(UnitRule(file="p.csv"), tmp_path).file == str((tmp_path / "p.csv").resolve())
    assert with_absolute_file(UnitRule(pattern="a"), tmp_path) == UnitRule(pattern="a")


def test_a_held_out_set_of_nobody_in_the_pool() -> None:
    units = in_no_unit_of_a_pool(pool()).units
    assert units is not None
    assert len(set(units.of_records.tolist())) == 4
