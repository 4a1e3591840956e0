"""A Label Studio server over plain REST: projects, tasks, annotations. Every request may be repeated.

The token is read when it is needed, is sent to this server alone, and is in no error, log or repr.
"""

import os
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dpal.errors import InvalidArgument, LabelStudioFailed
from dpal.imports import optional

_ATTEMPTS, _PAUSE_SECONDS, _TIMEOUT_SECONDS = 4, 0.5, 30.0
_PAGE = 200
# Tasks in one request. Pictures are in them, and a server takes 250 MB at most.
_BATCH, _BATCH_CHARACTERS = 50, 20_000_000
# What a server says that is too busy, or is only starting.
_TRY_AGAIN = {429, 500, 502, 503, 504}


def read_token(place: str) -> str:
    """The token in a file, or in the environment variable that is named with a dollar sign before it."""
    if place.startswith("$"):
        token = os.environ.get(place[1:], "")
        if not token.strip():
            raise InvalidArgument("labels.token", place, "an environment variable that holds the token; it is not set")
        return _one_word(token.strip())
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
    return _one_word(token)


def _one_word(token: str) -> str:
    """Anything else cannot be sent, and the error of whoever tries would quote it."""
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise InvalidArgument("labels.token", "what is there", "the token alone: one word, in one line")
    return token


@dataclass
class LabelStudio:
    """A server at an address."""

    url: str
    token: str = field(repr=False)
    _access: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        try:
            place = urlsplit(self.url)
            is_address = place.scheme in ("http", "https") and place.hostname is not None and place.port != 0
        except ValueError:
            is_address = False
        if "@" in self.url:
            # Not quoted: it is in no log. It would be sent instead of the token, besides.
            raise InvalidArgument("labels.url", "an address with a user's name", "one without name and password")
        if not is_address or not self.url.isprintable() or " " in self.url:
            raise InvalidArgument("labels.url", self.url, "an address such as http://127.0.0.1:8080")
        self.url = self.url.rstrip("/")

    def _header(self) -> str:
        """Older tokens are sent as they are; newer ones are exchanged for one that lasts minutes."""
        if self.token.count(".") != 2:
            return f"Token {self.token}"
        if not self._access:
            answer = self._once("POST", "/api/token/refresh", json={"refresh": self.token}, header=None)
            with self._understood():
                self._access = str(answer["access"])
        return f"Bearer {self._access}"

    def request(self, method: str, path: str, *, attempts: int = _ATTEMPTS, **options: Any) -> Any:
        """The answer's JSON. Tried again where the server could not be reached, or was not ready.

        What makes something new is tried once: where only the answer was lost, trying again would make a second one.
        """
        attempt, is_renewed = 1, False
        while True:
            try:
                return self._once(method, path, header=self._header(), **options)
            except _AccessEnded as error:
                # Refused before anything was done, so it may be repeated, whatever it makes.
                if is_renewed:
                    raise self._refused(error.status) from None
                is_renewed = True
            except _NotNow as error:
                if attempt == attempts:
                    raise LabelStudioFailed(
                        f"Label Studio at {self.url} did not answer {method} {path}: {error}. Is it running? Answers "
                        "that are there will be taken in later; none is lost."
                    ) from error
                self._access = ""
                time.sleep(_PAUSE_SECONDS * 2**attempt)
                attempt += 1

    def _refused(self, status: int) -> LabelStudioFailed:
        return LabelStudioFailed(
            f"Label Studio at {self.url} refuses the token (status {status}). Make a new one there, in Account & "
            "Settings, and put it where labels.token says. Nothing was changed."
        )

    def _once(self, method: str, path: str, *, header: str | None, **options: Any) -> Any:
        httpx = optional("httpx", extra="label-studio")
        headers = {} if header is None else {"Authorization": header}
        try:
            # Nothing is followed: a token must not be sent elsewhere.
            options |= {"headers": headers, "timeout": _TIMEOUT_SECONDS, "follow_redirects": False}
            response = httpx.request(method, f"{self.url}{path}", **options)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _NotNow(type(error).__name__) from error
        if response.status_code in _TRY_AGAIN:
            raise _NotNow(f"status {response.status_code}")
        if response.status_code in (401, 403):
            if self._access:
                self._access = ""
                raise _AccessEnded(response.status_code)
            raise self._refused(response.status_code)
        if response.status_code >= 300:
            # What is said of tasks may repeat the records in them.
            said = "" if path.endswith("/import") else f": {response.text[:300]}"
            raise LabelStudioFailed(
                f"Label Studio at {self.url} refused {method} {path} (status {response.status_code}){said}"
            )
        if response.status_code == 204 or not response.content:
            return None
        try:
            return response.json()
        except ValueError as error:
            raise self._stranger() from error

    def _stranger(self) -> LabelStudioFailed:
        return LabelStudioFailed(f"{self.url} does not answer like Label Studio. Check labels.url.")

    @contextmanager
    def _understood(self) -> Generator[None]:
        """Another server, or another version of this one, may answer in any form."""
        try:
            yield
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise self._stranger() from error

    def projects(self) -> list[dict[str, Any]]:
        """All projects that the token may see: their number and description."""
        found: list[dict[str, Any]] = []
        page = 1
        while True:
            answer = self.request("GET", "/api/projects", params={"page": page, "page_size": _PAGE})
            with self._understood():
                found += [
                    {"id": int(one["id"]), "description": str(one.get("description") or "")}
                    for one in answer["results"]
                ]
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
        answer = self.request("GET", f"/api/projects/{project}/export", params=params)
        with self._understood():
            return [
                {**task, "data": {**task["data"]}, "annotations": [_annotation(one) for one in task["annotations"]]}
                for task in answer
            ]

    def users(self) -> dict[int, str]:
        """What the people who annotate are called: their e-mail address."""
        answer = self.request("GET", "/api/users")
        with self._understood():
            return {int(user["id"]): str(user.get("email") or user.get("username") or user["id"]) for user in answer}

    def import_tasks(self, project: int, tasks: Iterable[Mapping[str, Any]]) -> None:
        """Some at a time, as they come: with their pictures, all of them may be larger than what a server takes."""
        for batch in _batches(tasks):
            self.request("POST", f"/api/projects/{project}/import", attempts=1, json=batch)


def _annotation(one: Mapping[str, Any]) -> dict[str, Any]:
    """An annotation with the number of who made it, or None if that account is gone."""
    who = one.get("completed_by")
    who = who["id"] if isinstance(who, dict) else who
    return {**one, "id": int(one["id"]), "completed_by": None if who is None else int(who)}


def _batches(tasks: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    batch, size = list[Mapping[str, Any]](), 0
    for task in tasks:
        length = sum(len(str(value)) for value in task["data"].values())
        if batch and (len(batch) == _BATCH or size + length > _BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(task)
        size += length
    if batch:
        yield batch


class _NotNow(Exception):
    """The server could not be reached or was not ready; what was asked may have been done or not."""


class _AccessEnded(Exception):
    """The access that a token was exchanged for has run out. What was asked was not done."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status
