"""From columns to a pool, wherever they came from: what each column means, and which record is wrong."""

from pathlib import Path
from typing import Any

import pytest
from pictures import pixels, png

from dpal.data.columns import Columns, Roles, as_names, pool_from_columns
from dpal.data.pool import Pool
from dpal.errors import BadData, DpalError, InvalidArgument


def pool(columns: Columns, roles: Roles, **changed: Any) -> Pool:
    options: dict[str, Any] = {
        "name": "notes",
        "folder": Path("/nowhere"),
        "classes": 2,
        "multi_label": False,
        "size": None,
        "channels": None,
        "class_counts_are_public": False,
    }
    return pool_from_columns(columns, roles, **(options | changed))


def test_several_text_columns_are_one_record() -> None:
    found = pool({"a": ["x", "z"], "b": ["y", ""], "label": [1, None]}, Roles(text=("a", "b"), label=("label",)))
    assert list(found.records.texts) == [("x", "y"), ("z", "")]
    # Without an id column, rows are counted from 1 and are known to be places.
    assert (found.ids.tolist(), found.ids_are_places) == (["1", "2"], True)
    assert found.labels.tolist() == [1, -1]


def test_several_label_columns_are_several_labels() -> None:
    columns = {"text": ["x", "y", "z"], "edema": ["1", "", "0"], "fracture": ["0", None, "0.8"]}
    roles = Roles(text=("text",), label=("edema", "fracture"))
    found = pool(columns, roles, classes=["edema", "fracture"])
    assert found.multi_label
    assert found.labelled().tolist() == [True, False, True]
    # A row that is filled in by half is a mistake, and not a row without labels.
    with pytest.raises(BadData, match="record '2'"):
        pool({**columns, "edema": ["1", "1", "0"]}, roles, classes=["edema", "fracture"])
    with pytest.raises(InvalidArgument, match="number of label columns is 2, but must be 3"):
        pool(columns, roles, classes=3)


def test_an_id_column_names_the_records() -> None:
    found = pool({"key": ["p7", "p3"], "text": ["x", "y"]}, Roles(text=("text",), identity="key"))
    assert (found.ids.tolist(), found.ids_are_places, found.labels) == (["p7", "p3"], False, None)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"note": ["x"]}, "notes has no column text. Its columns are note"),
        ({}, "Its columns are none"),
        ({"text": []}, "notes is empty"),
        ({"text": ["x", None]}, "text of record '2' is missing"),
        ({"text": ["x", 7]}, "text of record '2' is missing or not a text"),
    ],
)
def test_what_is_missing_is_named(columns: Columns, message: str) -> None:
    with pytest.raises(BadData, match=message):
        pool(columns, Roles(text=("text",)))


def test_roles_are_texts_or_images() -> None:
    for roles in ({}, {"text": ("a",), "image": "b"}):
        with pytest.raises(DpalError, match="text columns or an image column"):
            Roles(**roles)  # type: ignore[arg-type]
    assert Roles(image="file", identity="file", label=("x", "y")).names() == ("file", "x", "y")
    assert (as_names(None), as_names("ab"), as_names(["a", "b"])) == ((), ("ab",), ("a", "b"))


@pytest.mark.parametrize("cell", [None, "", "  ", 7, {"bytes": None, "path": None}, {}])
def test_a_cell_without_an_image_is_named(cell: object) -> None:
    with pytest.raises(BadData, match="image of record '2' is missing"):
        pool({"image": [png(pixels(0)), cell]}, Roles(image="image"), size=12, channels=3)
