"""A hostile client against the real server: refused, nothing stored, no traceback."""

import contextlib
import hashlib
import http.client
import json
import resource
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from command_line import dpal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from served import Served, serving

from dpal.campaign.campaign import Campaign
from dpal.campaign.inbox import Inbox
from dpal.campaign.labelling_desk import LabellingDesk
from dpal.campaign.layout import INBOX
from dpal.web.protection import BODY_SECONDS

CONFIG = """
data: {source: digits}
plan: {target_epsilon: 8, target_delta: 1.0e-4, initial_size: 40, query_sizes: [20], batch_size: 16, epochs: 1,
       planner: step-amplification, accountant: rdp}
model: {name: small-cnn}
"""


class Client:
    """Sends exactly what it is told, whatever a browser would send."""

    def __init__(self, served: Served, folder: Path) -> None:
        self.served, self.folder = served, folder
        self.name = f"dpal-c-{LabellingDesk(folder).mark}"
        self.cookie = f"{self.name}={served.token('A')}"

    def send(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=30)
        given = {
            "Host": f"127.0.0.1:{self.served.port}", "Origin": self.served.base, "Cookie": self.cookie,
            "Content-Type": "application/json",
        } | {name.replace("_", "-"): value for name, value in headers.items()}  # fmt: skip
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in given.items():
                if value:
                    connection.putheader(name, value)
            if body is not None and "Content-Length" not in given:
                connection.putheader("Content-Length", str(len(body)))
            # It may be refused before all of it was sent.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.endheaders(body)
            response = connection.getresponse()
            content = b""
            # A server that refuses may hang up on what it has not read, and take its own last words with it.
            with contextlib.suppress(ConnectionResetError):
                content = response.read()
            return response.status, content, dict(response.getheaders())
        finally:
            connection.close()

    def answer(self, **body: object) -> int:
        return self.send("POST", "/c/c/api/answer", json.dumps(body).encode())[0]

    def stored(self) -> str:
        """Everything that the campaign's folder holds, but for locks that come and go."""
        digest = hashlib.sha256()
        for file in sorted(self.folder.rglob("*")):
            if file.is_file() and file.suffix != ".lock" and not file.name.endswith("-journal"):
                digest.update(file.name.encode() + file.read_bytes())
        return digest.hexdigest()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Generator[Client]:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "c.yaml").write_text(CONFIG)
    for words in (["init", "c", "--config", "c.yaml"], ["run", "c"], ["experts", "add", "c", "A", "B"]):
        assert dpal(*words, cwd=folder).returncode in (0, 3)
    with serving(folder / "c") as served:
        yield Client(served, folder / "c")
        require_unharmed(served)


def require_unharmed(served: Served) -> None:
    assert served.process.poll() is None
    assert not any("Traceback" in line for line in served.log), served.log


def own_name(client: Client) -> str:
    return json.loads(client.send("GET", "/c/c/api/queue")[1])["waiting"][0]


def test_the_client_itself_works(client: Client) -> None:
    assert client.send("GET", "/c/c/api/task")[0] == 200
    assert len(own_name(client)) > 3


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 400),
        ({"Host": "evil.example:80", "Origin": "http://evil.example:80"}, 400),
        ({"Host": ""}, 400),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": ""}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Cookie": ""}, 401),
        ({"Cookie": "dpal-c=" + "0" * 64}, 401),
        ({"Cookie": "dpal-c=\xff\x00"}, 401),
        ({"Content_Length": "99999999999999999999"}, 413),
        ({"X_Forwarded_For": "10.0.0.1", "Cookie": ""}, 401),
    ],
)
def test_wrong_requests(client: Client, headers: dict[str, str], status: int) -> None:
    before, name = client.stored(), own_name(client)
    body = json.dumps({"question": name, "answer": 1, "key": "hostile-0001"}).encode()
    got, content, _ = client.send("POST", "/c/c/api/answer", body, **headers)
    assert got in (status, 400) and b"Traceback" not in content
    assert client.stored() == before


def test_another_persons_token_reaches_that_persons_questions_only(client: Client) -> None:
    names = {}
    for who in "AB":
        cookie = f"{client.name}={client.served.token(who)}"
        names[who] = set(json.loads(client.send("GET", "/c/c/api/queue", Cookie=cookie)[1])["waiting"])
    assert names["A"] and names["B"] and not names["A"] & names["B"]
    before = client.stored()
    for name in names["B"]:
        assert client.send("GET", f"/c/c/api/picture?name={name}&number=0")[0] == 404
        assert client.answer(question=name, answer=1, key="hostile-0002") == 404
    assert client.stored() == before


def test_records_that_were_not_selected_cannot_be_reached(client: Client) -> None:
    campaign = Campaign(client.folder)
    contents = campaign.contents()
    names = campaign.reader.names(contents)
    chosen = set(campaign.state().groups[0])
    before = client.stored()
    for record_id in [name for name in contents.ids if name not in chosen][:200]:
        for name in (names.name_of(record_id), record_id):
            assert client.send("GET", f"/c/c/api/question?name={quote(name)}")[0] == 404
            assert client.send("GET", f"/c/c/api/picture?name={quote(name)}")[0] == 404
    assert client.answer(question=names.name_of(record_id), answer=1, key="hostile-0003") == 404
    assert client.stored() == before


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py", "/static/..%2f..%2ferrors.py", "/static/%2e%2e/access.py", "/static//etc/passwd",
        "/c/../../etc/passwd", "/c/c/../../../campaign.db", "/c/..%2f/api/queue", "/c/c%00/api/queue",
        "/c/c/api/picture?name=../campaign.db", "/c/c/api/picture?name=%00", "/c/c/api/example?number=../../x",
        "/c/c/api/example?number=-1", "/api/campaigns/../../x", "/api/campaigns/c/download/..%2f..%2fcampaign.db",
        "//evil.example/", "/c/c/api/question?name=" + "a" * 8000, "/" + "x" * 20_000, "/%ff%fe", "/c/c/api/task/",
    ],
)  # fmt: skip
def test_path_tricks(client: Client, path: str) -> None:
    before = client.stored()
    status, content, _ = client.send("GET", path)
    assert status in (400, 401, 404, 307, 414)
    assert b"Traceback" not in content and b"root:" not in content and b"SQLite format" not in content
    assert str(client.folder).encode() not in content
    assert client.stored() == before


def test_bodies_of_ten_megabytes(client: Client) -> None:
    before = client.stored()
    body = b'{"question": "' + b"x" * 10_000_000 + b'"}'
    assert client.send("POST", "/c/c/api/answer", body)[0] == 413
    assert client.send("POST", "/session", body)[0] == 413
    assert client.stored() == before


def test_a_body_that_never_ends_is_not_waited_for(client: Client) -> None:
    before = client.stored()
    started = time.monotonic()
    status, _, _ = client.send("POST", "/c/c/api/answer", b'{"question": ', Content_Length="500")
    assert status == 408 and time.monotonic() - started < 2 * BODY_SECONDS
    assert client.stored() == before


def test_scripts_in_notes_stay_texts(client: Client) -> None:
    name, note = own_name(client), "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    assert client.answer(question=name, answer=1, key="hostile-note", note=note) == 200
    _, content, headers = client.send("GET", "/c/c/api/queue")
    assert headers["content-type"] == "application/json" and headers["x-content-type-options"] == "nosniff"
    assert json.loads(content)["done"][0]["note"] == note
    assert client.answer(question=name, answer=None, key="hostile-undo") == 200


def test_ten_thousand_bad_tokens(client: Client) -> None:
    before = client.stored()
    connection = http.client.HTTPConnection("127.0.0.1", client.served.port, timeout=30)
    headers = {"Origin": client.served.base, "Content-Type": "application/json"}
    statuses: dict[int, int] = {}
    for number in range(10_000):
        place = ("/session", "/c/c/session")[number % 2]
        connection.request("POST", place, json.dumps({"token": f"{number:064x}"}), headers)
        response = connection.getresponse()
        response.read()
        statuses[response.status] = statuses.get(response.status, 0) + 1
    connection.close()
    # Twenty a minute are looked at.
    assert set(statuses) == {401, 429} and statuses[401] <= 100 and sum(statuses.values()) == 10_000
    # Who is signed in goes on.
    assert client.send("GET", "/c/c/api/task")[0] == 200
    assert client.stored() == before


def test_a_full_disk_acknowledges_nothing(client: Client) -> None:
    """What cannot be written is not said to be saved, and is saved once there is room and it is sent again."""
    name, pid = own_name(client), client.served.process.pid
    body = json.dumps({"question": name, "answer": 1, "key": "full-disk-0001", "note": "x" * 2000}).encode()
    before, limits = client.stored(), resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        status, content, _ = client.send("POST", "/c/c/api/answer", body)
        assert status == 500 and not json.loads(content).get("final"), content
        assert client.stored() == before and client.send("GET", "/c/c/api/queue")[0] == 200
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
    entries = len(Inbox(client.folder).after(0))
    for _ in range(2):
        assert client.send("POST", "/c/c/api/answer", body)[0] == 200
    assert len(Inbox(client.folder).after(0)) == entries + 1
    assert client.answer(question=name, answer=None, key="full-disk-undo") == 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
WORDS = st.sampled_from(["question", "answer", "key", "note", "token", "do", "name", "go_on", "role"])
BODIES = st.dictionaries(WORDS, JSON, max_size=5)
PLACES = st.sampled_from([
    "/c/c/api/answer", "/c/c/session", "/session", "/c/c/leave", "/api/campaigns/c/people", "/api/campaigns/c/start",
    "/api/campaigns/c/stop", "/api/campaigns/c/close-round", "/c/c/api/task", "/nowhere",
])  # fmt: skip
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FUZZ
@given(place=PLACES, body=BODIES | JSON)
def test_any_json_is_refused_kindly(client: Client, place: str, body: Any) -> None:
    before = client.stored()
    content = json.dumps(body).encode("utf-8", "surrogatepass")
    status, answer, _ = client.send("POST", place, content)
    assert status in ((200,) if place == "/c/c/leave" and isinstance(body, dict) else (400, 401, 404, 405, 429))
    assert b"Traceback" not in answer
    assert client.stored() == before


@FUZZ
@given(place=PLACES, content=st.binary(max_size=300))
def test_any_bytes_are_refused_kindly(client: Client, place: str, content: bytes) -> None:
    before = client.stored()
    status, answer, _ = client.send("POST", place, content)
    assert 400 <= status < 500 or place == "/c/c/leave"
    assert b"Traceback" not in answer
    assert client.stored() == before


@FUZZ
@given(answer=JSON, note=st.text(max_size=60), key=st.text(max_size=70))
def test_any_answer_to_ones_own_question_is_valid_or_refused(client: Client, answer: Any, note: str, key: str) -> None:
    """What is stored is one of the campaign's answers, with this note, and nothing else."""
    inbox = Inbox(client.folder)
    before = len(inbox.after(0))
    body = {"question": own_name(client), "answer": answer, "note": note, "key": key}
    status, content, _ = client.send("POST", "/c/c/api/answer", json.dumps(body).encode("utf-8", "surrogatepass"))
    added = inbox.after(0)[before:]
    assert status in (200, 400) and b"Traceback" not in content
    assert len(added) <= (status == 200)
    for entry in added:
        given = entry.body["answer"]
        assert given in ("skip", "cannot-tell", None) or (type(given) is int and 0 <= given < 10)
        assert entry.person == "A" and entry.body["note"] == note


@FUZZ
@given(path=st.text(max_size=60), query=st.text(max_size=60))
def test_any_address(client: Client, path: str, query: str) -> None:
    def coded(text: str) -> str:
        return quote(text.encode("utf-8", "surrogatepass"))

    before = client.stored()
    for start in ("/", "/c/", "/c/c/", "/c/c/api/", "/static/", "/api/campaigns/", "/c/c/api/picture?name="):
        status, content, _ = client.send("GET", f"{start}{coded(path)}?{coded(query)}")
        assert status < 500 and b"Traceback" not in content
    assert client.stored() == before


def test_the_campaign_is_as_it_was(client: Client) -> None:
    """After all of that: what was stored are the answers that were acknowledged, and the campaign goes on."""
    assert (client.folder / INBOX).is_file()
    desk = LabellingDesk(client.folder)
    assert len(desk.arrangement.people) == 2
    campaign = Campaign(client.folder)
    campaign.take_in()
    assert campaign.verify().holds
