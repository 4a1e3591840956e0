"""Random faults over whole campaigns, in CI's time: DPAL_SOAK_FAULTS of them; `make soak` runs ten thousand."""

import os
import subprocess
import sys
from pathlib import Path

SOAK = Path(__file__).with_name("soak.py")
FAULTS = int(os.environ.get("DPAL_SOAK_FAULTS", "1000"))


def soak(*words: object) -> str:
    done = subprocess.run(
        [sys.executable, str(SOAK), *map(str, words)], capture_output=True, text=True, check=False, timeout=3000
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_whatever_happens_nothing_is_lost_and_nothing_released_without_its_charge(tmp_path: Path) -> None:
    said = soak("--faults", FAULTS, "--workers", 1, "--results", tmp_path / "soak.jsonl")
    assert "0 violations" in said
    # Started again, it has nothing left to do.
    again = soak("--faults", FAULTS, "--workers", 1, "--results", tmp_path / "soak.jsonl")
    assert said.splitlines()[-1] == again.splitlines()[-1]


def test_planted_bugs_are_found() -> None:
    said = soak("--planted", "--workers", 1)
    assert said.count(": found within") == 9, said
