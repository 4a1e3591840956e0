"""Imports at run time: names, import paths, and packages that are not installed."""

import sys
from functools import partial
from pathlib import Path

import pytest

from dpal.errors import InvalidArgument, MissingPackage
from dpal.imports import EXTRAS, import_path, missing_package, named, optional

REGISTRY = {"path": Path}


def test_a_name_is_looked_up_before_any_import_path() -> None:
    assert named("kind", "path", REGISTRY) is Path
    assert named("kind", "collections:OrderedDict", REGISTRY).__name__ == "OrderedDict"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("paths", 'kind is .paths., but must be one of path, or an import path "package.module:name"'),
        ("collections", "must be one of path"),
        (":OrderedDict", "must be one of path"),
        (".collections:OrderedDict", "must be one of path"),
        ("collections:", "must be one of path"),
        (3, "must be one of path"),
        ("no_such_module:Thing", r"No module named 'no_such_module'; is its folder in PYTHONPATH\?"),
        ("collections:Nothing", "collections has no Nothing"),
        ("sys:maxsize", "maxsize cannot be called"),
    ],
)
def test_a_wrong_name_says_what_is_allowed(name: object, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        named("kind", name, REGISTRY)


def test_an_error_inside_imported_code_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_part.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ZeroDivisionError):
        named("kind", "broken_part:Thing", REGISTRY)


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackage, match=r"pip install 'dpal\[data\]'"):
        optional("pyarrow", extra="data")
    assert optional("json", extra="data").__name__ == "json"
    for package, extra in EXTRAS.items():
        message = str(missing_package(ModuleNotFoundError(name=f"{package}.part")))
        assert package in message
        assert f"dpal[{extra}]" in message
    assert missing_package(ModuleNotFoundError(name="somebody_elses")) is None


def test_a_package_that_an_installed_package_misses_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_installed.py").write_text("import no_such_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        optional("half_installed", extra="data")


def test_code_is_named_by_where_it_is_imported_from() -> None:
    assert import_path(InvalidArgument) == "dpal.errors:InvalidArgument"
    assert import_path(InvalidArgument("size", 0, "1")) == "dpal.errors:InvalidArgument"
    assert import_path(partial(partial(named, "kind"), registry=REGISTRY)) == "dpal.imports:named"
