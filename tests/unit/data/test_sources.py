"""Data from a configuration: the name of a source and its options, each mistake named."""

import inspect
import re
from pathlib import Path

import pytest
from small_pools import some_pool

from dpal.data import Pool
from dpal.data.sources import SOURCES, open_pool, with_absolute_paths
from dpal.errors import DpalError, InvalidArgument


def test_paths_are_made_absolute_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/anna")
    given = {"file": "t.csv", "folder": "~/scans", "labels": "/data/l.npy", "label": "t.csv", "ids": None, "size": 8}
    assert with_absolute_paths(given, tmp_path) == {
        "file": str(tmp_path.resolve() / "t.csv"),
        "folder": "/home/anna/scans",
        "labels": "/data/l.npy",
        "label": "t.csv",
        "ids": None,
        "size": 8,
    }


def test_a_table_and_a_published_dataset_by_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text\nx\ny\n")
    assert len(open_pool("table", {"file": str(tmp_path / "t.csv"), "text": "text", "classes": 2})) == 2
    assert len(open_pool("digits", {"part": "test"})) == 360


@pytest.mark.parametrize("source", SOURCES)
def test_options_that_a_source_does_not_have_are_named(source: str) -> None:
    with pytest.raises(InvalidArgument, match=f"the options of the source {source} is .*colour") as caught:
        open_pool(source, {"colour": "blue"})
    assert "classes" in str(caught.value)


@pytest.mark.parametrize("source", ["tabel", "", "nowhere:pool", None])
def test_unknown_sources_are_refused(source: str) -> None:
    with pytest.raises(InvalidArgument, match="the source of data is"):
        open_pool(source, {})


def own_pool(count: int = 6) -> Pool:
    return some_pool()


def no_pool() -> list[int]:
    return [1, 2]


def test_a_function_of_ones_own_must_return_a_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    for function in (own_pool, no_pool):
        monkeypatch.setattr(f"small_pools.{function.__name__}", function, raising=False)
    assert isinstance(open_pool("small_pools:own_pool", {"count": 3}), Pool)
    with pytest.raises(DpalError, match="small_pools:no_pool returned a list instead of a Pool"):
        open_pool("small_pools:no_pool", {})


def test_every_option_of_every_source_is_documented() -> None:
    """The table in docs/data.md has exactly the arguments of the functions, and marks those that must be given."""
    page = (Path(__file__).parents[3] / "docs/data.md").read_text("utf-8")
    heading, _, *rows = re.search(r"(?ms)^\| option .*?\n\n", page)[0].strip().splitlines()  # type: ignore[index]
    names = [cell.strip(" `") for cell in heading.split("|")[2:-2]]
    assert set(names) == set(SOURCES)
    documented: dict[str, dict[str, str]] = {name: {} for name in names}
    for row in rows:
        options, *cells = (cell.strip() for cell in row.split("|")[1:-2])
        for name, cell in zip(names, cells, strict=True):
            if cell:
                documented[name] |= dict.fromkeys(options.replace("`", "").split(", "), cell)
    for name, function in SOURCES.items():
        parameters = inspect.signature(function).parameters
        assert set(documented[name]) == set(parameters), name
        for option, parameter in parameters.items():
            if parameter.default is parameter.empty:
                assert documented[name][option] == "required", (name, option)
