"""The container file: an ordinary base image, a user without rights before anything of ours runs, and `make demo`.

No engine runs here. What its steps do is held against the Makefile; docs/schedulers.md says how to build it.
"""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Step:
    """One instruction of a container file."""

    kind: str
    words: str


def steps_of(text: str) -> list[Step]:
    """Comments left out, continued lines put together."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ")
    return [Step(*line.split(maxsplit=1)) for line in whole.splitlines() if line.strip()]


def problems(steps: list[Step]) -> list[str]:
    """What should not be in an image for everyone."""
    found: list[str] = []
    user = "root"
    for step in steps:
        if step.kind == "FROM" and not re.fullmatch(r"python:3\.\d+-slim", step.words):
            found.append(f"{step.words} is not the ordinary image")
        if step.kind == "USER":
            user = step.words
        if user == "root" and (step.kind in ("COPY", "ADD", "CMD") or "pip" in step.words.split()):
            found.append(f"root does {step.kind} {step.words}")
        if re.search(r"https?://|--privileged|sudo|chmod|curl|wget", step.words):
            found.append(f"{step.kind} {step.words}")
    if user == "root":
        found.append("it runs as root")
    return found


STEPS = steps_of((ROOT / "Containerfile").read_text(encoding="utf-8"))


def test_it_runs_make_demo_as_a_user_without_rights() -> None:
    assert problems(STEPS) == []
    assert [step.kind for step in STEPS].count("FROM") == 1
    (start,) = (json.loads(step.words) for step in STEPS if step.kind == "CMD")
    assert start == ["make", "demo"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("USER dpal\n", ""),
        ("USER dpal\n", "USER dpal\nUSER root\n"),
        ("python:3.11-slim", "registry.example/python:3.11-slim"),
        ("&& touch", "&& curl example.org && touch"),
    ],
)
def test_a_wrong_image_is_found(old: str, new: str) -> None:
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    assert old in text and problems(steps_of(text.replace(old, new)))


def test_with_its_stamp_make_demo_installs_nothing(tmp_path: Path) -> None:
    """The image has no network when it runs: the stamp must be where the Makefile looks, and newer than its sources."""
    make = shutil.which("make")
    if make is None:
        pytest.skip("needs make")
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (install,) = (step.words for step in STEPS if "pip" in step.words)
    venv, stamp = re.search(r"-m venv (\S+)", install), re.search(r"touch (\S+)$", install)
    assert venv is not None and stamp is not None and f"{venv[1]}/bin/pip" in install
    assert "[$EXTRAS]" in install and "constraints.txt" in install
    (tmp_path / venv[1]).mkdir()
    (tmp_path / stamp[1]).touch()
    # Inside `make test` it would also print the folder it enters.
    command = [make, "--no-print-directory", "-n", "demo"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].strip() == f"{venv[1]}/bin/dpal demo" and "pip" not in done.stdout


def test_nothing_of_the_working_folder_goes_into_it() -> None:
    """Whatever git ignores stays outside, and so does git itself."""
    left_out = set((ROOT / ".dockerignore").read_text(encoding="utf-8").split())
    ignored = set((ROOT / ".gitignore").read_text(encoding="utf-8").split())
    # With or without a slash at its end: a folder, or a folder and links to one.
    assert {name.removeprefix("**/").rstrip("/") for name in left_out} == {
        name.rstrip("/") for name in ignored | {".git"}
    }
