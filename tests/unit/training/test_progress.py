"""Progress on a terminal and in a log."""

import io
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from dpal.training import progress
from dpal.training.progress import Activity, StepProgress, counted, doing, in_words


def steps(console: Console, seconds: float, **options: Any) -> None:
    with StepProgress("phase 1", 3, batch_size=10.0, console=console, **options) as shown:
        for _ in range(3):
            time.sleep(seconds)
            shown.step()


def test_a_terminal_shows_every_step() -> None:
    text = io.StringIO()
    steps(Console(file=text, force_terminal=True, width=120), 0.15, later_records=600.0)
    assert "phase 1" in text.getvalue()
    assert "warming up" in text.getvalue()
    assert "step 2 of 3" in text.getvalue()
    assert "for all phases" in text.getvalue()


def test_a_log_has_nothing_about_what_is_done_at_once() -> None:
    text = io.StringIO()
    steps(Console(file=text, force_terminal=False, width=120), 0.0)
    time.sleep(0.3)
    assert text.getvalue() == ""


def test_a_log_has_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.4)
    text = io.StringIO()
    steps(Console(file=text, force_terminal=False, width=20), 0.7, later_records=600.0)
    lines = text.getvalue().splitlines()
    assert lines[0] == "phase 1: step 0 of 3, warming up; the first step takes longer"
    # However narrow the console, a line stays a line.
    assert all(line.startswith("phase 1: step ") for line in lines)
    assert 3 <= len(lines) <= 6
    # 60 steps' worth of records are still to come, at 0.7 s or a little more each.
    assert "records/s, 1 s left, 4" in lines[-1]
    assert lines[-1].endswith("for all phases")


def test_a_phase_that_begins_in_its_middle_counts_and_measures_from_there() -> None:
    with StepProgress(
        "phase 1", 1200, batch_size=10.0, begins_after=1140, console=Console(file=io.StringIO())
    ) as shown:
        assert shown.line() == "phase 1: step 1,140 of 1,200, warming up; the first step takes longer"
        for _ in range(4):
            shown.step()
            time.sleep(0.1)
        # Three steps of 0.1 s each are measured, and 56 are left.
        assert "step 1,144 of 1,200" in shown.line()
        (left,) = re.findall(r", (\d+) s left", shown.line())
        assert 5 <= int(left) <= 30


def test_the_innermost_of_several_is_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.0)
    text = io.StringIO()
    console = Console(file=text, force_terminal=False, width=120)
    with Activity("opening", console=console):
        time.sleep(0.5)
        with Activity("reading", 2000, console=console) as inner:
            inner.advance(1000)
            time.sleep(0.5)
    assert [line.split(" (")[0] for line in text.getvalue().splitlines()] == [
        "opening",
        "reading: 1,000 of 2,000, 0 s so far",
    ]


def test_counting_passes_items_on_and_ends_with_them() -> None:
    assert list(counted("abc", "reading", total=5, each=2)) == ["a", "b", "c"]
    for item in counted("abc", "reading", total=3):
        if item == "b":
            break
    with pytest.raises(ZeroDivisionError), doing("dividing"):
        for item in counted([1, 0], "reading", total=2):
            1 / item
    assert progress._shown._open == []


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (89, "89 s"), (95, "2 min"), (3000, "50 min"), (6000, "1 h 40 min"), (183_600, "2 d 3 h")],
)
def test_times_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


# A run whose lines come every half second, as they would every minute, and which takes a few.
PROGRAM = """
import sys
from dpal.training import progress
progress.FIRST_SECONDS, progress.LINE_SECONDS = 0.1, 0.5
from dpal.cli import run
run()
"""
CONFIG = """
data: {source: digits}
evaluation: {source: digits, options: {part: test}, is_public: true}
plan: {target_epsilon: 8, initial_size: 200, query_sizes: [100], batch_size: 100, epochs: 60, accountant: rdp,
       planner: step-amplification}
model: {name: small-cnn}
oracle: simulated
seed: 3
not_private: true
"""


def test_a_real_run_writes_steps_and_the_time_left_to_its_log(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)
    for words in (["init", "c", "--config", "c.yaml"], ["run", "c"]):
        with (tmp_path / "log").open("w") as log:
            command = [sys.executable, "-c", PROGRAM, *words]
            subprocess.run(command, cwd=tmp_path, env=os.environ, stdout=log, stderr=log, check=True, timeout=300)
    lines = (tmp_path / "log").read_text().splitlines()
    first = [line for line in lines if line.startswith("phase 1 of 2: step ")]
    assert len(first) >= 2
    assert any(" left, " in line and line.endswith(" for all phases") for line in first)
    last = [line for line in lines if line.startswith("phase 2 of 2: step ")]
    assert last
    assert not any("for all phases" in line for line in last)
    # No escape sequences, no carriage returns: it is a log.
    assert not any("\x1b" in line or "\r" in line for line in lines)
