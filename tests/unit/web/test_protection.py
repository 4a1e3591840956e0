"""Requests that no page of this server makes are refused before anything looks at them."""

import asyncio
from pathlib import Path

import pytest
from small_web import ADDRESS, Web, small_web

from dpal.web.protection import BODY_LIMIT, HEADERS, BadTokens, Protection


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Web:
    return small_web(tmp_path_factory.mktemp("web"))


PLACES = ("/", "/c/c/", "/c/c/api/queue", "/static/label.js", "/nowhere", "/api/campaigns")


@pytest.mark.parametrize("place", PLACES)
def test_every_response_has_the_headers(web: Web, place: str) -> None:
    response = web.client().get(place)
    for name, value in HEADERS.items():
        assert response.headers[name] == value
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:9", "localhost.evil.example:8000", "", "[::1"]
)
@pytest.mark.parametrize("place", PLACES)
def test_another_host_is_refused(web: Web, place: str, host: str) -> None:
    response = web.client().get(place, headers={"host": host})
    assert response.status_code == 400 and "another name" in response.text


@pytest.mark.parametrize("host", ["localhost:8000", "LOCALHOST:8000", "[::1]:8000"])
def test_its_own_names_are_answered(web: Web, host: str) -> None:
    assert web.client().get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"origin": "https://127.0.0.1:8000"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_posts_from_elsewhere_are_refused(web: Web, headers: dict[str, str], status: int) -> None:
    client = web.signed_in("A")
    client.headers["content-type"] = "application/json"
    assert client.post("/c/c/api/answer", content=b"{}", headers=headers).status_code == status


def test_another_site_reads_nothing_and_may_link(web: Web) -> None:
    client = web.signed_in("A")
    elsewhere = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    assert client.get("/c/c/api/queue", headers=elsewhere).status_code == 403
    assert client.get("/c/c/", headers=elsewhere | {"sec-fetch-mode": "navigate"}).status_code == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "CONNECT"])
def test_other_methods_are_refused(web: Web, method: str) -> None:
    assert web.client().request(method, "/c/c/api/answer").status_code == 405


def test_large_bodies_are_refused_whether_they_say_so_or_not(web: Web) -> None:
    client = web.signed_in("A")
    client.headers["content-type"] = "application/json"
    assert client.post("/c/c/api/answer", content=b"x" * (BODY_LIMIT + 1)).status_code == 413
    pieces = (b"x" * 10_000 for _ in range(20))
    assert client.post("/c/c/api/answer", content=pieces).status_code == 413
    assert client.post("/c/c/api/answer", content=b"{}", headers={"content-length": "-1"}).status_code == 413


def test_wrong_tokens_have_to_wait_after_some(web: Web) -> None:
    fresh = Web(
        access=type(web.access)(desks=web.access.desks, is_https=False), campaign=web.campaign, people=web.people
    )
    client = fresh.client()
    statuses = [client.post("/c/c/session", json={"token": f"{n:064d}"}).status_code for n in range(30)]
    assert statuses == [401] * 20 + [429] * 10
    statuses = {client.post("/session", json={"token": f"{n:064d}"}).status_code for n in range(3)}
    assert statuses == {429}
    # Who has the right one comes in at once, and an old cookie is not counted at all.
    assert client.post("/session", json={"token": fresh.access.operator_token}).status_code == 200
    token = fresh.access.desks["c"].token(fresh.people["A"])
    assert client.post("/c/c/session", json={"token": token}).status_code == 200


@pytest.mark.parametrize("token", [None, 5, "", "x" * 10_000, ["a"], {"a": 1}, "é" * 64, "\x00" * 64])
def test_tokens_that_are_none(web: Web, token: object) -> None:
    access = type(web.access)(desks=web.access.desks, is_https=False)
    client = Web(access=access, campaign=web.campaign, people=web.people).client()
    for place in ("/session", "/c/c/session"):
        assert client.post(place, json={"token": token}).status_code == 401


def test_addresses_that_are_not_there(web: Web, tmp_path: Path) -> None:
    client = web.signed_in("A")
    for place in (
        "/c/other/", "/c/other/api/queue", "/static/../access.py", "/static/%2e%2e/access.py", "/static/..%2faccess.py",
        "/static/", "/c/c/campaign.db", "/c/c/../../etc/passwd", "/c/%2e%2e/", "/.git/config", "/c//", "/c/c/api/",
    ):  # fmt: skip
        response = client.get(place)
        assert response.status_code == 404, place
        assert "Traceback" not in response.text and str(web.campaign.folder) not in response.text


def test_bad_tokens_are_forgotten_after_a_while_and_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    bad = BadTokens(most=2, seconds=10, addresses=2)
    for _ in range(2):
        assert not bad.must_wait("a")
        bad.note("a")
    assert bad.must_wait("a") and not bad.must_wait("b")
    now[0] = 11
    assert not bad.must_wait("a")
    for address in "xyz":
        bad.note(address)
    assert len(bad._times) == 2


def test_the_address_is_one_of_its_origins() -> None:
    assert ADDRESS.base in ADDRESS.origins


def test_a_request_that_the_end_of_the_server_breaks_off_is_no_traceback() -> None:
    async def slow(scope: object, receive: object, send: object) -> None:
        raise asyncio.CancelledError

    sent: list[dict[str, object]] = []

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    async def receive() -> dict[str, object]:
        return {"type": "http.request"}

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"127.0.0.1:8000")]}
    asyncio.run(Protection(slow, origins=ADDRESS.origins)(scope, receive, send))  # type: ignore[arg-type]
    assert [message.get("status") for message in sent] == [503, None]
