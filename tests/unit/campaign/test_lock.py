"""One writer at a time; the lock ends with the process that holds it."""

import json
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dpal.campaign.layout import WRITER
from dpal.campaign.lock import only_writer, writer_of
from dpal.errors import CampaignBusy

HOLD = """
import sys, time
from pathlib import Path
from dpal.campaign.lock import only_writer

with only_writer(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(60)
"""


def test_who_is_writing_is_known_without_taking_the_lock(tmp_path: Path) -> None:
    assert writer_of(tmp_path) is None
    with only_writer(tmp_path):
        assert f"Process {os.getpid()} " in str(writer_of(tmp_path))
    assert writer_of(tmp_path) is None
    # A process that was killed leaves its name behind.
    text = json.dumps({"process": 999_999_999, "machine": platform.node(), "since": "then"})
    (tmp_path / WRITER).write_text(text)
    assert writer_of(tmp_path) is None


def test_a_second_writer_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    with only_writer(tmp_path):
        with pytest.raises(CampaignBusy, match=rf"Process {os.getpid()} on .* is writing"), only_writer(tmp_path):
            pass
        # The refusal leaves the holder as it was.
        assert f"Process {os.getpid()} " in str(writer_of(tmp_path))
    with only_writer(tmp_path):
        pass


def test_a_killed_writer_leaves_no_lock(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(CampaignBusy, match=f"Process {holder.pid} "), only_writer(tmp_path):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=60)
    # Its note is still there, but nobody is writing.
    assert (tmp_path / WRITER).exists()
    assert writer_of(tmp_path) is None
    with only_writer(tmp_path):
        pass
