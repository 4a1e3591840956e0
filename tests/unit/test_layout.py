"""Imports point one way, tests are named for the sources they test, and files have a size that a reader can take in."""

from pathlib import Path

import pytest
from imports import violations

import dpal

PACKAGE = Path(dpal.__file__).parent
TESTS = Path(__file__).parent
FOLDERS = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file())
LONGEST, SHORTEST = 400, 25
# Tests without a source file of the same name: why.
WITHOUT_A_SOURCE: dict[str, str] = {
    "reports/test_traced.py": "every line of report and certificate against the table in docs/reports.md",
}
# Sources that are shorter: why.
SHORT: dict[str, str] = {
    "training/losses.py": "where a newcomer looks for a loss",
    "privacy/rounding.py": "one function that everything that shows an ε uses",
}


def sources(folder: str) -> list[Path]:
    return sorted(path for path in (PACKAGE / folder).rglob("*.py") if path.name != "__init__.py")


def length(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_test_file_is_named_for_its_source_file(folder: str) -> None:
    for path in (TESTS / folder).rglob("test_*.py"):
        name = path.relative_to(TESTS)
        source = PACKAGE / name.with_name(name.name.removeprefix("test_"))
        assert source.is_file() or name.as_posix() in WITHOUT_A_SOURCE, f"{name} tests no file: there is no {source}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_source_file_is_too_long_or_too_short(folder: str) -> None:
    for path in sources(folder):
        name = path.relative_to(PACKAGE).as_posix()
        assert length(path) <= LONGEST, f"{name} has {length(path)} lines: split it"
        assert length(path) >= SHORTEST or name in SHORT, f"{name} has {length(path)} lines: merge it, or say why not"


def test_exceptions_are_still_needed() -> None:
    for name in WITHOUT_A_SOURCE:
        path = Path(name)
        assert (TESTS / path).is_file() and not (PACKAGE / path.with_name(path.name.removeprefix("test_"))).is_file()
    for name in SHORT:
        assert length(PACKAGE / name) < SHORTEST, name


def test_imports_point_one_way() -> None:
    assert violations(PACKAGE) == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("privacy/bad.py", "from dpal.planning import plan"),
        ("privacy/bad.py", "import torch"),
        ("privacy/bad.py", "import torch.nn.functional"),
        ("selection/bad.py", "from dpal import cli"),
        ("selection/bad.py", "from dpal.planning.plan import Plan"),
        ("training/bad.py", "from dpal.selection.scores import entropy"),
        ("selection/bad.py", "from ..training import loop"),
        ("errors.py", "from .privacy import checks"),
        ("somewhere/new.py", "from dpal.errors import DpalError"),
    ],
)
def test_a_wrong_import_is_found(tmp_path: Path, file: str, line: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(line + "\n")
    assert len(violations(tmp_path)) == 1
