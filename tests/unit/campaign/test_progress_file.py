"""How far another process has come, and asking it to stop, without a signal to a number."""

import json
import os
import time
from pathlib import Path
from unittest.mock import patch

import pytest

from dpal.campaign.layout import PROGRESS, STOP_REQUEST
from dpal.campaign.progress_file import progress_of, reporting_progress, request_stop
from dpal.training.progress import doing


def wait_for(condition) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_what_it_does_is_seen_and_gone_afterwards(tmp_path: Path) -> None:
    assert progress_of(tmp_path) is None
    with reporting_progress(tmp_path), doing("counting sheep"):
        wait_for(lambda: progress_of(tmp_path) and "counting sheep" in str(progress_of(tmp_path)))
    assert progress_of(tmp_path) is None and list(tmp_path.iterdir()) == []


def test_a_request_to_stop_is_like_control_c(tmp_path: Path) -> None:
    assert not request_stop(tmp_path)
    with pytest.raises(KeyboardInterrupt), reporting_progress(tmp_path):
        wait_for(lambda: progress_of(tmp_path) is not None)
        assert request_stop(tmp_path)
        time.sleep(10)
    assert list(tmp_path.iterdir()) == []


def test_a_request_is_heard_also_after_the_clock_was_set_back(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), reporting_progress(tmp_path):
        wait_for(lambda: progress_of(tmp_path) is not None)
        hour_ago = time.time() - 3600
        (tmp_path / STOP_REQUEST).touch()
        os.utime(tmp_path / STOP_REQUEST, (hour_ago, hour_ago))
        time.sleep(10)


def test_an_old_request_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / STOP_REQUEST).touch()
    with reporting_progress(tmp_path):
        time.sleep(1.5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "document",
    [
        {"process": 2**22 + 1, "at": 1e12},
        {"process": 1, "at": 0.0},
        {"process": 1},
        [],
    ],
)
def test_what_a_dead_process_left_is_not_believed(tmp_path: Path, document) -> None:
    import platform

    if isinstance(document, dict):
        document |= {"machine": platform.node(), "since": 0.0, "lines": []}
    (tmp_path / PROGRESS).write_text(json.dumps(document))
    assert progress_of(tmp_path) is None and not request_stop(tmp_path)


def test_too_little_memory_is_not_its_business(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with patch("dpal.campaign.progress_file.lines_now", side_effect=MemoryError), reporting_progress(tmp_path):
        assert progress_of(tmp_path) is None
    assert capfd.readouterr().err == ""
