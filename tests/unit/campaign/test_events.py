"""Events: a real command and a real web server are told, with public facts only, and can harm nothing."""

import json
import socket
import sys
import threading
import time
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from command_line import dpal

from dpal.campaign import events
from dpal.campaign.config import Events, checked_config
from dpal.campaign.events import Announcer
from dpal.campaign.state import State
from dpal.campaign.status import WAITING, Status
from dpal.errors import InvalidArgument

CONFIG = """
data: {source: digits}
plan: {target_epsilon: 8, target_delta: 1.0e-4, initial_size: 40, query_sizes: [20], batch_size: 16, epochs: 1,
       planner: step-amplification, accountant: rdp, selection: random}
model: {name: small-cnn}
"""
FACTS = {
    "event", "campaign", "phases_done", "phases", "epsilon_spent", "epsilon_budget", "delta", "is_private",
}  # fmt: skip


@pytest.fixture
def webhook() -> Generator[tuple[str, list[dict[str, Any]]]]:
    got: list[dict[str, Any]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def made(folder: Path, **changed: object) -> None:
    document = yaml.safe_load(CONFIG) | changed
    (folder / "c.yaml").write_text(yaml.safe_dump(document))
    assert dpal("init", "clinic", "--config", "c.yaml", cwd=folder).returncode == 0


def test_a_campaign_announces_what_happens(tmp_path: Path, webhook: tuple[str, list[dict[str, Any]]]) -> None:
    url, got = webhook
    (tmp_path / "note.py").write_text(
        "import sys; open(sys.argv[1], 'a').write(sys.argv[2] + ' ' + sys.stdin.read() + '\\n')"
    )
    command = [sys.executable, str(tmp_path / "note.py"), str(tmp_path / "events.txt")]
    made(tmp_path, oracle="simulated", events={"command": command, "webhook": url})
    assert dpal("run", "clinic", cwd=tmp_path).returncode == 0
    assert [event["event"] for event in got] == ["phase-ended", "phase-ended", "finished"]
    assert [event.get("phase") for event in got] == [1, 2, None]
    lines = (tmp_path / "events.txt").read_text().splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["phase-ended", "phase-ended", "finished"]
    assert [json.loads(line.partition(" ")[2]) for line in lines] == got
    for event in got:
        # Public facts, and no others.
        assert set(event) <= FACTS | {"phase", "metrics"} and event["campaign"] == "clinic"
        assert str(tmp_path) not in json.dumps(event)
    # Told once: another run of a finished campaign says that it is finished, and no phase again.
    assert dpal("run", "clinic", cwd=tmp_path).returncode == 0
    assert [event["event"] for event in got[3:]] == ["finished"]


def test_labels_are_asked_for(tmp_path: Path, webhook: tuple[str, list[dict[str, Any]]]) -> None:
    url, got = webhook
    made(tmp_path, events={"webhook": url})
    assert dpal("run", "clinic", cwd=tmp_path).returncode == 3
    assert [event["event"] for event in got] == ["labels-needed"] and set(got[0]) == FACTS


@pytest.mark.parametrize(
    "told",
    [
        {"command": ["/nowhere/at-all"]},
        {"command": [sys.executable, "-c", "raise SystemExit(3)"]},
        {"webhook": "http://127.0.0.1:9/closed"},
    ],
)
def test_who_is_told_can_harm_nothing(tmp_path: Path, told: dict[str, object]) -> None:
    made(tmp_path, events=told)
    done = dpal("run", "clinic", cwd=tmp_path)
    assert done.returncode == 3 and "the campaign goes on" in done.stdout


def told_by(events: Events) -> list[str]:
    """What is said while one event is announced of a campaign that waits."""
    said: list[str] = []
    status = SimpleNamespace(
        stage=WAITING, folder="/x/clinic", phases_done=0, phases=1, epsilon_spent=0.0, epsilon_budget=8.0,
        target_delta=1e-4, is_private=True,
    )  # fmt: skip
    state = cast("State", SimpleNamespace(trained=(), selected=()))
    Announcer(events, state, tell=said.append).now(cast("Status", status), state)
    return said


def test_a_server_that_does_not_speak_http_can_harm_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"220 mail.clinic.example ESMTP\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        said = told_by(Events(webhook=f"http://127.0.0.1:{server.getsockname()[1]}/hook"))
        thread.join()
    assert len(said) == 1 and "the campaign goes on" in said[0]
    assert "the campaign goes on" in told_by(Events(webhook="http://127.0.0.1:9/a hook"))[0]


def test_a_command_may_leave_something_running(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_SECONDS", 5.0)
    start = time.monotonic()
    assert told_by(Events(command=["sh", "-c", "sleep 8 & exit 0"])) == []
    assert time.monotonic() - start < 5


def test_only_web_addresses() -> None:
    with pytest.raises(InvalidArgument, match=r"events\.webhook"):
        checked_config({"events": {"webhook": "file:///etc/passwd"}})
