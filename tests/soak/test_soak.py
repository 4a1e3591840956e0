"""Random faults over whole campaigns: a thousand of them in CI, fewer at a desk, ten thousand by `make soak`."""

import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).with_name("soak.py")


def soak(*words: object) -> str:
    done = subprocess.run(
        [sys.executable, str(SOAK), *map(str, words)], capture_output=True, text=True, check=False, timeout=3000
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def last_table_line(said: str) -> str:
    return next(line for line in said.splitlines() if line.endswith(" violations"))


# Other seeds each, so that CI tells more stories than a desk does.
@pytest.mark.parametrize(("faults", "first"), [(150, 1), pytest.param(1000, 100_001, marks=pytest.mark.exhaustive)])
def test_whatever_happens_nothing_is_lost_and_nothing_released_without_its_charge(
    tmp_path: Path, faults: int, first: int
) -> None:
    words = ("--faults", faults, "--first", first, "--workers", 1, "--results", tmp_path / "soak.jsonl")
    said = last_table_line(soak(*words))
    assert said.endswith(", 0 violations")
    assert int(said.split()[0].replace(",", "")) >= faults
    if faults == 150:
        # Started again, it has nothing left to do.
        assert last_table_line(soak(*words)) == said


@pytest.mark.exhaustive
def test_planted_bugs_are_found() -> None:
    said = soak("--planted", "--workers", 1)
    assert said.count(": found within") == 9, said
