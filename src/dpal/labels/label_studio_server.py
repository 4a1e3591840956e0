"""A Label Studio server over plain REST: projects, tasks, annotations. Every request may be repeated.

The token is read when it is needed, is sent to this server alone, and is in no error, log or repr.
"""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from dpal.errors import InvalidArgument, LabelStudioFailed
from dpal.imports import optional

_ATTEMPTS, _PAUSE_SECONDS, _TIMEOUT_SECONDS = 4, 0.5, 30.0
_PAGE = 200
_BATCH = 50
# What a server says that is too busy, or is only starting.
_TRY_AGAIN = {429, 500, 502, 503, 504}


def read_token(place: str) -> str:
    """The token in a file, or in the environment variable that is named with a dollar sign before it."""
    if place.startswith("$"):
        token = os.environ.get(place[1:], "")
        if not token.strip():
            raise InvalidArgument("labels.token", place, "an environment variable that holds the token; it is not set")
        return token.strip()
    file = Path(place).expanduser()
    try:
        token = file.read_text(encoding="utf-8").strip() if len(place) < 4096 and file.is_file() else ""
    except (OSError, UnicodeDecodeError):
        token = ""
    if not token:
        # Not quoted: it may be a token that was put where its place belongs.
        raise InvalidArgument(
            "labels.token", "this text", "a file that holds the token, or a variable such as $LABEL_STUDIO_TOKEN"
        )
    return token


@dataclass
class LabelStudio:
    """A server at an address."""

    url: str
    token: str = field(repr=False)
    _access: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise InvalidArgument("labels.url", self.url, "an address such as http://127.0.0.1:8080")
        self.url = self.url.rstrip("/")

    def _header(self) -> str:
        """Older tokens are sent as they are; newer ones are exchanged for one that lasts minutes."""
        if self.token.count(".") != 2:
            return f"Token {self.token}"
        if not self._access:
            answer = self._once("POST", "/api/token/refresh", json={"refresh": self.token}, header=None)
            self._access = str(answer["access"])
        return f"Bearer {self._access}"

    def request(self, method: str, path: str, *, attempts: int = _ATTEMPTS, **options: Any) -> Any:
        """The answer's JSON. Tried again where the server could not be reached, or was not ready.

        What makes something new is tried once: where only the answer was lost, trying again would make a second one.
        """
        for attempt in range(1, attempts + 1):
            try:
                return self._once(method, path, header=self._header(), **options)
            except _NotNow as error:
                if attempt == attempts:
                    raise LabelStudioFailed(
                        f"Label Studio at {self.url} did not answer {method} {path}: {error}. Is it running? Answers "
                        "that are there will be taken in later; none is lost."
                    ) from error
                self._access = ""
                time.sleep(_PAUSE_SECONDS * 2**attempt)
        raise AssertionError  # the last attempt returns or raises

    def _once(self, method: str, path: str, *, header: str | None, **options: Any) -> Any:
        httpx = optional("httpx", extra="label-studio")
        headers = {} if header is None else {"Authorization": header}
        try:
            # Nothing is followed: a token must not be sent elsewhere.
            options |= {"headers": headers, "timeout": _TIMEOUT_SECONDS, "follow_redirects": False}
            response = httpx.request(method, f"{self.url}{path}", **options)
        except httpx.HTTPError as error:
            raise _NotNow(type(error).__name__) from error
        if response.status_code in _TRY_AGAIN:
            raise _NotNow(f"status {response.status_code}")
        if response.status_code in (401, 403):
            if self._access:
                self._access = ""
                raise _NotNow("the access ended")
            raise LabelStudioFailed(
                f"Label Studio at {self.url} refuses the token (status {response.status_code}). Make a new one there, "
                "in Account & Settings, and put it where labels.token says. Nothing was changed."
            )
        if response.status_code >= 300:
            raise LabelStudioFailed(
                f"Label Studio at {self.url} refused {method} {path} (status {response.status_code}): "
                f"{response.text[:300]}"
            )
        if response.status_code == 204 or not response.content:
            return None
        try:
            return response.json()
        except ValueError as error:
            raise LabelStudioFailed(f"{self.url} does not answer like Label Studio. Check labels.url.") from error

    def projects(self) -> list[dict[str, Any]]:
        """All projects that the token may see."""
        found: list[dict[str, Any]] = []
        page = 1
        while True:
            answer = self.request("GET", "/api/projects", params={"page": page, "page_size": _PAGE})
            found += cast("list[dict[str, Any]]", answer["results"])
            if len(found) >= int(answer["count"]) or not answer["results"]:
                return found
            page += 1

    def create_project(self, *, title: str, description: str, interface: str, instructions: str) -> None:
        body = {
            "title": title,
            "description": description,
            "label_config": interface,
            "expert_instruction": instructions,
            "show_instruction": bool(instructions),
        }
        self.request("POST", "/api/projects", attempts=1, json=body)

    def delete_project(self, project: int) -> None:
        self.request("DELETE", f"/api/projects/{project}")

    def tasks(self, project: int) -> list[dict[str, Any]]:
        """All tasks with their annotations, those that were skipped too."""
        params = {"exportType": "JSON", "download_all_tasks": "true"}
        return cast("list[dict[str, Any]]", self.request("GET", f"/api/projects/{project}/export", params=params))

    def users(self) -> dict[int, str]:
        """What the people who annotate are called: their e-mail address."""
        answer = cast("list[dict[str, Any]]", self.request("GET", "/api/users"))
        return {int(user["id"]): str(user.get("email") or user.get("username") or user["id"]) for user in answer}

    def import_tasks(self, project: int, tasks: Sequence[Mapping[str, Any]]) -> None:
        """Some at a time: pictures are in them."""
        for start in range(0, len(tasks), _BATCH):
            batch = list(tasks[start : start + _BATCH])
            self.request("POST", f"/api/projects/{project}/import", attempts=1, json=batch)


class _NotNow(Exception):
    """The server could not be reached or was not ready; what was asked may have been done or not."""
