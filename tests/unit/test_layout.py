"""Imports point one way, every source has its tests and tests their source, and files have a size to take in."""

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
# Sources without a test file of the same name: where they are tested, and why there.
WITHOUT_A_TEST: dict[str, tuple[str, str]] = {
    "__main__.py": ("unit/campaign/test_background.py", "it is how campaigns are started in the background"),
    "audit/worst_cases.py": ("properties/test_largest_move.py", "every engine is tried on them, and planted bugs too"),
    "campaign/phase_worker.py": (
        "unit/campaign/test_phase_task.py",
        "a worker carries out tasks: what is sent is what it trains",
    ),
    "campaign/recorded_answers.py": (
        "unit/campaign/test_labelling.py",
        "the one door for answers, met by everything that brings answers",
    ),
    "campaign/selecting.py": (
        "unit/campaign/test_large_choosing.py",
        "both ways lead to the same records, in whole campaigns",
    ),
    "campaign/status.py": (
        "unit/campaign/test_verification.py",
        "what status shows is compared with what verify computes, at every step of a campaign",
    ),
    "cli/campaigns.py": (
        "end_to_end/test_new_user.py",
        "commands are what people run: each in a process of its own, with its exit code and its words",
    ),
    "cli/demo.py": ("end_to_end/test_new_user.py", "the command prints what a whole demonstration has left"),
    "cli/init.py": ("end_to_end/test_init.py", "a person answers on a terminal, which only a process of its own has"),
    "cli/labels.py": ("end_to_end/test_names.py", "tables go out to people and come back, in processes of their own"),
    "cli/serve.py": (
        "browser/test_labelling.py",
        "a server runs in a process of its own, and its links are opened in a browser",
    ),
    "data/named/dataset.py": ("unit/data/named/test_registry.py", "types only; the registry has one for each dataset"),
    "experiments/ablations.py": ("unit/experiments/test_sweep.py", "a list of experiments, and each of them is run"),
    "experiments/commentary.py": (
        "unit/experiments/test_results_page.py",
        "texts only; the page that has them is compared with the committed one",
    ),
    "experiments/measurements.py": (
        "unit/experiments/test_sweep.py",
        "measures finished campaigns, which the sweep makes once for all tests",
    ),
    "experiments/table1.py": ("unit/experiments/test_sweep.py", "a list of experiments, and each of them is run"),
    "labels/label_rows.py": ("unit/labels/test_label_sheets.py", "each form is read back as it is written"),
    "models/nfnet.py": ("golden/test_nfnet.py", "its outputs are compared with those of timm's network"),
}
# Sources that are shorter: why.
SHORT: dict[str, str] = {
    "campaign/little_signal.py": "the one place that knows both a campaign's model and planning's warning",
    "training/losses.py": "where a newcomer looks for a loss",
    "privacy/rounding.py": "one function that everything that shows an ε uses",
}


def sources(folder: str) -> list[Path]:
    return sorted(path for path in (PACKAGE / folder).rglob("*.py") if path.name != "__init__.py")


def untested(package: Path, tests: Path) -> list[str]:
    """The sources that have no test file of their own name in the same place."""
    names = (path.relative_to(package) for path in package.rglob("*.py") if path.name != "__init__.py")
    return sorted(name.as_posix() for name in names if not (tests / name.with_name(f"test_{name.name}")).is_file())


def length(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_test_file_is_named_for_its_source_file(folder: str) -> None:
    for path in (TESTS / folder).rglob("test_*.py"):
        name = path.relative_to(TESTS)
        source = PACKAGE / name.with_name(name.name.removeprefix("test_"))
        assert source.is_file() or name.as_posix() in WITHOUT_A_SOURCE, f"{name} tests no file: there is no {source}"


def test_every_source_file_has_a_test_file_of_its_name() -> None:
    missing = [name for name in untested(PACKAGE, TESTS) if name not in WITHOUT_A_TEST]
    assert not missing, f"write tests for {missing}, or say in WITHOUT_A_TEST where they are tested"


def test_a_source_without_a_test_is_found(tmp_path: Path) -> None:
    package, tests = tmp_path / "package", tmp_path / "tests"
    for path in (
        *(package / name for name in ("errors.py", "a/__init__.py", "a/one.py", "a/two.py", "b/one.py")),
        *(tests / name for name in ("test_errors.py", "a/test_one.py", "test_two.py")),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    # In the same place: a test of the same name elsewhere is another file's.
    assert untested(package, tests) == ["a/two.py", "b/one.py"]


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
    missing = untested(PACKAGE, TESTS)
    for name, (place, why) in WITHOUT_A_TEST.items():
        assert name in missing, f"{name} has tests of its own, or is gone: remove it from WITHOUT_A_TEST"
        assert (TESTS.parent / place).is_file(), f"{name} should be tested in {place}, which is not there"
        assert why
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
