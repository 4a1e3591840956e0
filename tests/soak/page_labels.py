"""People label in the browser while the server may die: `dpal serve` in a child, and what a page sends to it."""

import http.client
import json
import re
import socket
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from commands import Ended, Running, nothing, started

_SECONDS = 20.0
PEOPLE = ("Ann", "Ben")


@dataclass
class Sitting:
    """What was answered in one sitting, and how the server ended."""

    # What the server said is saved.
    saved: dict[str, int] = field(default_factory=dict)
    ended: Ended | None = None


def label(
    folder: Path,
    truth: dict[str, int],
    *,
    answers: int,
    at_start: Callable[[], None] = nothing,
    during: Callable[[Running], None] = lambda running: None,
    stop: int,
) -> Sitting:
    """Serve the campaign, answer so many questions or as many as it takes until the server dies, and stop it."""
    running, sitting = started(["serve", folder, "--port", 0], at_start=at_start), Sitting()
    try:
        links = _links(running)
        for name in PEOPLE:
            if name in links and len(sitting.saved) < answers:
                _wait_until_it_listens(running, links[name][0])
                _answers(links[name], truth, answers, sitting)
        during(running)
    except (OSError, http.client.HTTPException):
        # It died, or is dying.
        pass
    finally:
        running.kill(stop)
        sitting.ended = running.wait()
    return sitting


def _links(running: Running) -> dict[str, tuple[int, str, str]]:
    """Of each person: the port, the campaign's path and the token."""
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        text = running.output()
        found = re.findall(r"^  (\w+) \(.*?\): http://127\.0\.0\.1:(\d+)(/\S+?)#token=(\S+)$", text, re.MULTILINE)
        # Links are printed before it listens to anybody, the last of them last.
        if {name for name, *_ in found} >= set(PEOPLE) or (found and not running.is_running()):
            return {name: (int(port), path, token) for name, port, path, token in found}
        if not running.is_running() or "Nobody labels" in text:
            return {}
        time.sleep(0.002)
    raise TimeoutError("the server did not start")


def _wait_until_it_listens(running: Running, port: int) -> None:
    """Links are printed a moment before."""
    while running.is_running():
        with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), timeout=_SECONDS):
            return
        time.sleep(0.002)


def _answers(link: tuple[int, str, str], truth: dict[str, int], answers: int, sitting: Sitting) -> None:
    port, path, token = link
    origin = f"http://127.0.0.1:{port}"
    headers = {"Origin": origin, "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)) as connection:

        def sent(method: str, place: str, body: object = None) -> tuple[int, dict[str, object]]:
            connection.request(method, f"{path}{place}", json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            content = answer.read()
            if cookie := answer.getheader("Set-Cookie"):
                headers["Cookie"] = cookie.partition(";")[0]
            return answer.status, json.loads(content)

        sent("POST", "session", {"token": token})
        _, queue = sent("GET", "api/queue")
        waiting = queue.get("waiting", [])
        assert isinstance(waiting, list)
        for name in waiting[: answers - len(sitting.saved)]:
            body = {"question": name, "answer": truth[name], "key": f"key-of-{name}"}
            status, said = sent("POST", "api/answer", body)
            if status == 200 and "saved" in said:
                sitting.saved[name] = truth[name]
