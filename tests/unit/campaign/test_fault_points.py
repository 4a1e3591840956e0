"""The points where tests kill the process: every one is in the code, and only the named one kills."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dpal
from dpal.campaign.fault_points import POINTS, VARIABLE

THREE_TIMES = """
from dpal.campaign.fault_points import reached
for number in (1, 2, 3):
    print(number, flush=True)
    reached("train.step")
    reached("train.charged")
"""


def test_the_list_is_what_the_code_reaches() -> None:
    """A point that is only in the list is never killed at, and one that is only in the code is never tested."""
    package = Path(dpal.__file__).parent
    text = "\n".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py"))
    by_name = set(re.findall(r'reached\(\s*"([a-z.-]+)"', text))
    # The mean, selections and training phases are charged by the same lines.
    ends = re.findall(r'f"\{point\}\.([a-z-]+)"', text)
    by_step = {f"{step}.{end}" for step in ("mean", "select", "train") for end in ends}
    assert len(by_step) == 6
    assert by_name | by_step == set(POINTS)
    assert len(set(POINTS)) == len(POINTS)


@pytest.mark.parametrize(
    ("wanted", "last"), [("train.step", 1), ("train.step:2", 2), ("train.step:4", 0), ("select.charged", 0), ("", 0)]
)
def test_the_process_dies_at_the_named_point_and_nowhere_else(wanted: str, last: int) -> None:
    environment = {**os.environ, VARIABLE: wanted, "PYTHONPATH": str(Path(dpal.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", THREE_TIMES], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == (-signal.SIGKILL if last else 0)
    assert done.stdout.split() == [str(number) for number in range(1, (last or 3) + 1)]
