"""A real Label Studio server on 127.0.0.1, in an environment of its own, from a migrated copy of its data folder."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx

TOKEN = "0123456789abcdef0123456789abcdef01234567"  # noqa: S105 - of a server that lives as long as its test
USER, PASSWORD = "operator@example.org", "a long password"
# Where `make test-label-studio` installs it.
PROGRAM = Path(os.environ.get("DPAL_LABEL_STUDIO", Path(__file__).parents[2] / ".venv-label-studio/bin/label-studio"))
_START_SECONDS = 240


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


class Server:
    """A running server, which can be stopped and started again on the same data and port."""

    def __init__(self, data: Path) -> None:
        self.data, self.port = data, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        (self.data / "images").mkdir(parents=True, exist_ok=True)
        command = [
            str(PROGRAM), "start", "--no-browser", "--data-dir", str(self.data), "--internal-host", "127.0.0.1",
            "--port", str(self.port), "--username", USER, "--password", PASSWORD, "--user-token", TOKEN,
            "--enable-legacy-api-token",
        ]  # fmt: skip
        quiet = {
            "COLLECT_ANALYTICS": "false",
            "SENTRY_DSN": "",
            "FRONTEND_SENTRY_DSN": "",
            "LATEST_VERSION_CHECK": "false",
        }
        with (self.data / "log.txt").open("ab") as log:
            self.process = subprocess.Popen(
                command, env=os.environ | quiet, stdout=log, stderr=log, start_new_session=True, cwd=self.data
            )
        deadline = time.monotonic() + _START_SECONDS
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if self.get("/api/projects").status_code == 200:
                    return
            assert self.process.poll() is None and time.monotonic() < deadline, (self.data / "log.txt").read_text()[
                -2000:
            ]
            time.sleep(0.5)

    def stop(self, how: int = signal.SIGTERM) -> None:
        """The whole group: the server has processes of its own."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, how)
            self.process.wait(timeout=60)

    def _call(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {"Authorization": f"Token {TOKEN}"}
        return httpx.request(method, f"{self.url}{path}", headers=headers, timeout=30, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self._call("GET", path, **options)

    def projects(self) -> list[dict[str, Any]]:
        return sorted(self.get("/api/projects", params={"page_size": 100}).json()["results"], key=lambda one: one["id"])

    def tasks(self, project: int) -> list[dict[str, Any]]:
        params = {"exportType": "JSON", "download_all_tasks": "true"}
        return self.get(f"/api/projects/{project}/export", params=params).json()

    def annotate(self, task: dict[str, Any], choices: list[str], *, skip: bool = False) -> dict[str, Any]:
        """What the page sends when someone submits or skips."""
        target = "image1" if "image1" in task["data"] else "text1"
        result = [{"from_name": "label", "to_name": target, "type": "choices", "value": {"choices": choices}}]
        body = {"result": [] if skip else result, "was_cancelled": skip, "lead_time": 1.0}
        made = self._call("POST", f"/api/tasks/{task['id']}/annotations/", json=body)
        assert made.status_code == 201, made.text
        return made.json()

    def change(self, annotation: dict[str, Any], choices: list[str]) -> None:
        result = [{**annotation["result"][0], "value": {"choices": choices}}]
        made = self._call("PATCH", f"/api/annotations/{annotation['id']}/", json={"result": result})
        assert made.status_code == 200, made.text

    def add_user(self, email: str) -> str:
        """Another annotator; returns their token."""
        made = self._call("POST", "/api/users/", json={"email": email, "username": email, "password": PASSWORD})
        assert made.status_code == 201, made.text
        return str(made.json()["id"])


@contextlib.contextmanager
def label_studio(folder: Path, template: Path) -> Generator[Server]:
    """A server with a fresh copy of the migrated data folder."""
    shutil.copytree(template, folder)
    server = Server(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def migrated(folder: Path) -> Path:
    """A data folder whose database is set up, which takes a minute once."""
    server = Server(folder)
    folder.mkdir(parents=True)
    server.start()
    server.stop()
    return folder
