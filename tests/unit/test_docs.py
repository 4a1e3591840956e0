"""README and docs: their code runs, their links lead somewhere, and the site builds without a warning."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from documents import Command, blocks_of, commands_of, run_block, run_command
from warm_processes import python

import dpal

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DOCUMENTS = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
USER_DOCUMENTS = [path for path in DOCUMENTS if DOCS / "maths" not in path.parents]
OTHER_PAGES = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
WITH_CODE = [path for path in DOCUMENTS if any(block.runs for block in blocks_of(path.read_text("utf-8")))]
GENERATED = {DOCS / "reference/cli.md", DOCS / "changelog.md", DOCS / "contributing.md", DOCS / "security.md"}
MOST_WORDS = 600
MOST_LINES = 30


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", WITH_CODE, ids=name_of)
def test_the_code_in_the_documents_runs(path: Path, tmp_path: Path) -> None:
    done = python(ROOT / "tests/support/documents.py", path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]


def links_of(path: Path) -> list[str]:
    prose = re.sub(r"(?ms)^ *```.*?^ *```$", "", text_of(path))
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", prose)
    return links + re.findall(r'(?:src|srcset|href)="([^"#:]+)"', prose)


@pytest.mark.parametrize("path", [*DOCUMENTS, *OTHER_PAGES], ids=name_of)
def test_links_and_pictures_lead_somewhere(path: Path) -> None:
    for target in links_of(path):
        place = (path.parent / target).resolve()
        assert place.exists() or place in GENERATED, f"{name_of(path)} points to {target}"


def test_the_readme_is_short() -> None:
    """Words as a reader counts them: code and tables included, the addresses of links and pictures not."""
    words = re.sub(r"<[^>]+>|\]\([^)]*\)", " ", text_of(ROOT / "README.md"))
    count = len(re.findall(r"\w[\w'’.,=-]*", words))
    assert 200 < count <= MOST_WORDS, count


def deep_imports(code: str) -> list[str]:
    """Imports from further down than dpal.PACKAGE."""
    found: list[str] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom):
            found.append(node.module or "")
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return [module for module in found if module.startswith("dpal.") and module.count(".") > 1]


@pytest.mark.parametrize("path", USER_DOCUMENTS, ids=name_of)
def test_user_documents_need_the_public_surface_only(path: Path) -> None:
    for block in blocks_of(text_of(path)):
        if block.kind == "python":
            assert deep_imports(block.code) == []
    assert not re.search(r"(?m)^\s+(from dpal\.\w+\.\w+|import dpal\.\w+\.\w+)", text_of(path))


@pytest.mark.parametrize("path", [*DOCUMENTS, *OTHER_PAGES], ids=name_of)
def test_files_that_documents_name_exist(path: Path) -> None:
    """From the root or from src/dpal on. The changelog may name old ones, start and tutorial files of the reader's."""
    named = re.findall(r"`((?:[\w.-]+/)+[\w-]+\.(?:py|md|json))(?:::\w+)?`", text_of(path))
    if path.name in ("CHANGELOG.md", "start.md", "tutorial.md"):
        return
    for name in named:
        assert (ROOT / name).exists() or (ROOT / "src/dpal" / name).exists(), name


def test_configurations_in_documents_are_valid() -> None:
    from dpal.campaign.config import checked_config

    found = [block for path in DOCUMENTS for block in blocks_of(text_of(path)) if block.kind == "yaml"]
    assert len(found) >= 3
    for block in found:
        checked_config(yaml.safe_load(block.code))


def test_a_deep_import_is_found() -> None:
    assert deep_imports("from dpal.privacy.pld import PldAccountant") == ["dpal.privacy.pld"]
    assert deep_imports("import dpal.privacy.pld") == ["dpal.privacy.pld"]
    assert deep_imports("from dpal import privacy\nfrom dpal.data import Pool") == []


def test_own_parts_are_small() -> None:
    """Each example of docs/extending.md has under 30 lines."""
    examples = [block for block in blocks_of(text_of(DOCS / "extending.md")) if block.title.endswith(".py")]
    assert len(examples) >= 3
    for block in examples:
        assert len(block.code.splitlines()) < MOST_LINES, block.title


def test_root_files_agree() -> None:
    """One version everywhere; forms, workflow and hooks are YAML, name no other package index and no machine."""
    stated = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]["version"]
    assert yaml.safe_load(text_of(ROOT / "CITATION.cff"))["version"] == stated
    assert re.search(r"(?m)^## (\S+)", text_of(ROOT / "CHANGELOG.md"))[1] == stated  # type: ignore[index]
    assert f"| {stated.rpartition('.')[0]} | yes |" in text_of(ROOT / "SECURITY.md")
    files = [*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml"]
    assert len(files) == 6
    for path in files:
        assert yaml.safe_load(text_of(path))
        assert not re.search(r"https?://|index-url|/work/|/home/|/tmp/", text_of(path)), path


def test_dir_shows_what_there_is() -> None:
    """And importing dpal imports nothing heavy; planning no torch."""
    assert set(dir(dpal)) == set(dpal.__all__)
    for name in dpal.__all__:
        assert getattr(dpal, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        dpal.nonsense  # noqa: B018
    code = (
        "import sys, dpal; assert 'numpy' not in sys.modules; dpal.plan; dpal.privacy; dpal.selection; "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("package", ["privacy", "data", "selection", "training", "models", "randomness"])
def test_every_exported_name_is_there(package: str) -> None:
    module = getattr(dpal, package)
    assert module.__all__
    for name in module.__all__:
        assert getattr(module, name) is not None


def loaded_from_elsewhere(page: str) -> list[str]:
    """Addresses that a browser would fetch from other machines to show the page."""
    tags = re.findall(r"<(?:script|img|iframe|source|link|style)\b[^>]*>", page)
    loading = [tag for tag in tags if not re.search(r"rel=\"?(?:next|prev|canonical)", tag)]
    return [found for tag in loading for found in re.findall(r"(?:src|href)=[\"']?((?:https?:)?//[^\s\"'>]+)", tag)]


def test_something_loaded_from_elsewhere_is_found() -> None:
    assert loaded_from_elsewhere('<link rel="stylesheet" href="https://fonts.example/css">') == [
        "https://fonts.example/css"
    ]
    assert loaded_from_elsewhere("<script src=//cdn.example/a.js></script>") == ["//cdn.example/a.js"]
    assert loaded_from_elsewhere('<a href="https://example.org">a link is fine</a><img src="images/a.png">') == []


def test_every_page_is_in_the_navigation_and_the_site_is_whole(tmp_path: Path) -> None:
    """Built strictly, as `make docs` does. Pages load nothing from elsewhere; every command has its section."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        assert loaded_from_elsewhere(text_of(page)) == [], page
    reference = text_of(tmp_path / "site/reference/cli.html")
    for words in ("dpal labels export", "--selection-epsilon", "dpal keys new", "dpal experiments table"):
        assert words in reference


def test_blocks_of_a_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twins: wrong output, a wrong command and broken Python are noticed."""
    monkeypatch.chdir(tmp_path)
    page = (
        '```python title="own.py"\nNUMBER = 1\n```\n\n```console\n$ dpal --version\n1.0\n$ ls\nx\n```\n'
        "<!-- not run: it waits -->\n```sh\ndpal run\n```\n```python\n1 / 0\n```\n"
    )
    own, console, left_out, python = blocks_of(page)
    run_block(own, "page")
    assert (tmp_path / "own.py").read_text() == "NUMBER = 1\n"
    assert list(commands_of(console)) == [Command("dpal --version", "1.0\n")]
    with pytest.raises(AssertionError, match=r"but the document has"):
        run_block(console, "page")
    assert left_out.reason == "it waits"
    run_block(left_out, "page")
    with pytest.raises(ZeroDivisionError):
        run_block(python, "page")
    with pytest.raises(AssertionError, match="exit code 2"):
        run_command(Command("dpal nonsense", None))
