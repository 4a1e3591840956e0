"""Where a token may stand, and what is said of a server that is not there. A real one is met in end_to_end."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from dpal.errors import InvalidArgument, LabelStudioFailed
from dpal.labels import label_studio_server
from dpal.labels.label_studio_server import LabelStudio, read_token

SECRET = "0123456789abcdef0123456789abcdef01234567"  # noqa: S105


def test_a_token_is_in_a_file_or_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n")
    monkeypatch.setenv("MY_TOKEN", f" {SECRET} ")
    assert read_token(str(tmp_path / "token")) == read_token("$MY_TOKEN") == SECRET


@pytest.mark.parametrize("place", [SECRET, "/nowhere/token", "", "$NOT_SET", "x" * 10_000])
def test_a_token_in_the_place_of_its_place_is_not_repeated(place: str) -> None:
    with pytest.raises(InvalidArgument, match=r"labels\.token") as caught:
        read_token(place)
    assert SECRET not in str(caught.value)


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_studio_server, "_PAUSE_SECONDS", 0.01)
    server = LabelStudio("http://127.0.0.1:9/", SECRET)
    with pytest.raises(LabelStudioFailed, match=r"127\.0\.0\.1:9 did not answer GET .*Is it running") as caught:
        server.projects()
    assert SECRET not in str(caught.value) and SECRET not in repr(server)
    with pytest.raises(InvalidArgument, match=r"labels\.url"):
        LabelStudio("ftp://x", SECRET)


class _Answers:
    """A server that answers each request with what a function says: a status and a document."""

    def __init__(self, answer: Callable[[str, str, dict[str, str]], tuple[int, object]]) -> None:
        self.seen: list[tuple[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = self.path.partition("?")[0]
                outer.seen.append((self.command, path))
                status, document = answer(self.command, path, dict(self.headers))
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = _answer  # noqa: N815 - the base class's names

            def log_message(self, *words: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> "_Answers":
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def test_an_access_that_ends_is_renewed_also_where_something_is_made() -> None:
    """It lasts five minutes, and sending the pictures of a round may take longer."""
    valid = ["first"]

    def answer(method: str, path: str, headers: dict[str, str]) -> tuple[int, object]:
        if path == "/api/token/refresh":
            return 200, {"access": valid[-1]}
        return (201, {}) if headers["Authorization"] == f"Bearer {valid[-1]}" else (401, {})

    with _Answers(answer) as served:
        server = LabelStudio(served.url, "a.b.c")
        server.import_tasks(1, [{"data": {"dpal_name": "a"}}])
        valid.append("second")
        server.import_tasks(1, [{"data": {"dpal_name": "b"}}])
        made = [path for method, path in served.seen if path.endswith("/import")]
        assert len(made) == 3


def test_a_token_that_is_refused_again_and_again_is_said() -> None:
    def answer(method: str, path: str, headers: dict[str, str]) -> tuple[int, object]:
        return (200, {"access": "x"}) if path == "/api/token/refresh" else (401, {})

    with _Answers(answer) as served, pytest.raises(LabelStudioFailed, match="refuses the token"):
        LabelStudio(served.url, "a.b.c").projects()


@pytest.mark.parametrize(
    "document", [[], {}, {"results": [1], "count": 1}, {"results": [{}], "count": 1}, "x", None, 3]
)
def test_a_server_that_is_not_label_studio(document: object) -> None:
    with _Answers(lambda *_: (200, document)) as served:
        with pytest.raises(LabelStudioFailed, match=r"does not answer like Label Studio. Check labels\.url"):
            LabelStudio(served.url, SECRET).projects()
        for ask in (lambda server: server.tasks(1), lambda server: server.users()):
            if document in ([], {}):
                continue
            with pytest.raises(LabelStudioFailed, match="does not answer like"):
                ask(LabelStudio(served.url, SECRET))


@pytest.mark.parametrize(("who", "number"), [(4, 4), (None, None), ({"id": 4, "email": "a@b.c"}, 4)])
def test_who_made_an_annotation(who: object, number: int | None) -> None:
    task = {"id": 1, "data": {}, "annotations": [{"id": 2, "completed_by": who}]}
    with _Answers(lambda *_: (200, [task])) as served:
        assert LabelStudio(served.url, SECRET).tasks(1)[0]["annotations"][0]["completed_by"] == number


def test_pictures_are_sent_in_requests_that_a_server_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(LabelStudio, "request", lambda self, *_, json, **more: sent.append(len(json)))
    small, large = ({"data": {"dpal_name": "a", "image1": "x" * size}} for size in (10, 9_000_000))
    LabelStudio("http://127.0.0.1:9", SECRET).import_tasks(1, [large] * 5 + [small] * 120)
    assert sent == [2, 2, 50, 50, 21] and sum(sent) == 125


def test_what_is_said_of_tasks_is_not_repeated() -> None:
    with _Answers(lambda *_: (400, {"detail": "a patient's text"})) as served:
        server = LabelStudio(served.url, SECRET)
        with pytest.raises(LabelStudioFailed, match="status 400") as caught:
            server.import_tasks(1, [{"data": {"dpal_name": "a"}}])
        assert "patient" not in str(caught.value)
        with pytest.raises(LabelStudioFailed, match="a patient's text"):
            server.projects()


@pytest.mark.parametrize("token", [f"{SECRET}\n# for the clinic", f"{SECRET} x", f"{SECRET}é"])
def test_a_token_with_something_next_to_it_is_refused_and_not_repeated(tmp_path: Path, token: str) -> None:
    """The error of whoever tries to send it would quote it."""
    (tmp_path / "token").write_text(token)
    with pytest.raises(InvalidArgument, match="one word") as caught:
        read_token(str(tmp_path / "token"))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("url", ["http://", "http://[::1", "http://127.0.0.1:80a", "http://a b/", "http://a\n/", "x"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(InvalidArgument, match=r"labels\.url"):
        LabelStudio(url, SECRET)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidArgument, match=r"labels\.url") as caught:
        LabelStudio("https://ann:hunter2@labels.example.org", SECRET)
    assert "hunter2" not in str(caught.value)
