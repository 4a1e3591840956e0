"""What the labelling page asks for, and who gets which answer."""

from pathlib import Path

import pytest
from small_web import Web, read, said, small_web, waiting

from dpal.campaign.arranging import add_person
from dpal.campaign.guidelines import write_guidelines
from dpal.campaign.inbox import Inbox
from dpal.web.access import Access, named_desks

KEY = "key-{:08d}"


@pytest.fixture
def web(tmp_path: Path) -> Web:
    return small_web(tmp_path)


def test_a_link_becomes_a_cookie_that_scripts_cannot_read(web: Web) -> None:
    client = web.client()
    token = web.access.desks["c"].token(web.people["A"])
    done = client.post("/c/c/session", json={"token": token})
    assert read(done) == {"role": "expert"}
    cookie = done.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/c/c/" in cookie
    assert read(client.get("/c/c/api/task"))["person"] == "A"


def test_the_task_says_what_to_do_and_nothing_of_the_plan(web: Web) -> None:
    write_guidelines(web.campaign.folder, "Look closely.")
    task = read(web.signed_in("A").get("/c/c/api/task"))
    assert set(task) == {
        "campaign", "owner", "person", "role", "classes", "multi_label", "shows", "unit", "window", "guidelines",
        "rule",
    }  # fmt: skip
    assert task["classes"] == ["no", "yes"] and task["guidelines"]["text"] == "Look closely."


def test_questions_answers_and_undo(web: Web) -> None:
    client = web.signed_in("A")
    names = waiting(client)
    question = read(client.get("/c/c/api/question", params={"name": names[0]}))
    assert question == {"name": names[0], "texts": [], "pictures": 0, "said": None, "others": []}
    assert read(said(client, names[0], 1, KEY.format(1), note="clear"))["saved"]
    assert read(said(client, names[0], 1, KEY.format(1), note="clear"))["saved"]
    queue = read(client.get("/c/c/api/queue"))
    assert queue["waiting"] == names[1:]
    assert queue["done"] == [{"name": names[0], "answer": 1, "note": "clear"}]
    assert queue["all"]["decided"] == 1 and not queue["finished"]
    assert read(said(client, names[0], None, KEY.format(2)))["saved"]
    assert waiting(client) == names
    web.campaign.take_in()
    assert web.campaign.state().answers == {}


@pytest.mark.parametrize(
    "address", ["task", "queue", "question?name=r00", "picture?name=r00&number=0", "example?number=0"]
)
def test_nobody_reads_without_a_link_of_their_own(web: Web, address: str) -> None:
    assert web.client().get(f"/c/c/api/{address}").status_code == 401
    stranger = web.client()
    name = f"dpal-c-{web.access.desks['c'].mark}"
    stranger.cookies.set(name, "0" * 64, domain="127.0.0.1", path="/c/c/")
    assert stranger.get(f"/c/c/api/{address}").status_code == 401


def test_an_operators_cookie_is_not_a_labelling_one(web: Web) -> None:
    assert web.signed_in("operator").get("/c/c/api/queue").status_code == 401


def test_people_reach_their_own_questions_only(web: Web) -> None:
    client, others = web.signed_in("A"), waiting(web.signed_in("B"))
    chosen = set(web.campaign.state().groups[0])
    stranger = next(name for name in web.campaign.contents().ids if name not in chosen)
    for name in (others[0], stranger, "", "../../campaign.db", "\ud800", "x" * 5000):
        given = {"name": name.encode("utf-8", "surrogatepass").decode("utf-8", "replace")}
        assert client.get("/c/c/api/question", params=given).status_code == 404
        assert client.get("/c/c/api/picture", params=given).status_code == 404
        assert said(client, given["name"], 1, KEY.format(1)).status_code == 404
    for number in ("-1", "1", "x", "1e3", "999999999", "²"):
        own = {"name": waiting(client)[0], "number": number}
        assert client.get("/c/c/api/picture", params=own).status_code == 404
    officer = web.signed_in("O")
    assert set(read(officer.get("/c/c/api/task"))) == {"campaign", "person", "role", "owner"}
    assert officer.get("/c/c/api/queue").status_code == 404
    assert len(Inbox(web.campaign.folder).after(0)) == 4


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"question": 1, "answer": 1, "key": "key-00000001"},
        {"question": "NAME", "answer": 7, "key": "key-00000001"},
        {"question": "NAME", "answer": "yes", "key": "key-00000001"},
        {"question": "NAME", "answer": [1, 0], "key": "key-00000001"},
        {"question": "NAME", "answer": True, "key": "key-00000001"},
        {"question": "NAME", "answer": 1, "key": "x"},
        {"question": "NAME", "answer": 1, "key": "key-00000001", "note": 5},
        {"question": "NAME", "answer": 1, "key": "key-00000001", "note": "x" * 2001},
        {"question": "NAME", "answer": 1, "key": "key-00000001", "person": "B"},
    ],
)
def test_wrong_answers_are_refused_and_not_saved(web: Web, body: object) -> None:
    client = web.signed_in("A")
    if isinstance(body, dict) and body.get("question") == "NAME":
        body = body | {"question": waiting(client)[0]}
    refused = client.post("/c/c/api/answer", json=body)
    assert refused.status_code == 400 and set(refused.json()) <= {"error", "final"}
    assert len(Inbox(web.campaign.folder).after(0)) == 4


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 60_000, b"null", b'{"a": NaN'])
def test_bodies_that_are_not_json_objects(web: Web, content: bytes) -> None:
    client = web.signed_in("A")
    refused = client.post("/c/c/api/answer", content=content, headers={"content-type": "application/json"})
    assert refused.status_code == 400 and "Traceback" not in refused.text


def test_experts_who_differ_meet_an_arbiter(web: Web) -> None:
    from dpal.campaign.arranging import arrange
    from dpal.campaign.reader import Reader

    arrange(Reader(web.campaign.folder), see="everyone")
    name = waiting(web.signed_in("A"))[0]
    read(said(web.signed_in("A"), name, 1, KEY.format(1)))
    read(said(web.signed_in("B"), name, 0, KEY.format(2)))
    arbiter = web.signed_in("R")
    assert waiting(arbiter) == [name]
    assert sorted(read(arbiter.get("/c/c/api/question", params={"name": name}))["others"]) == [0, 1]
    assert read(web.signed_in("A").get("/c/c/api/question", params={"name": name}))["others"] == []
    read(said(arbiter, name, "cannot-tell", KEY.format(3)))
    assert waiting(arbiter) == []


def test_a_new_link_ends_the_old_one_at_once(web: Web) -> None:
    from dpal.campaign.arranging import renew_link
    from dpal.campaign.reader import Reader

    client = web.signed_in("A")
    assert waiting(client)
    renew_link(Reader(web.campaign.folder), "A")
    assert client.get("/c/c/api/queue").status_code == 401


def test_signing_out(web: Web) -> None:
    client = web.signed_in("A")
    assert client.post("/c/c/leave", json={}).status_code == 200
    assert client.get("/c/c/api/task").status_code == 401


def test_people_look_through_a_window_of_their_own(tmp_path: Path) -> None:
    """Images of 16 bits: the stated window, another one, and nothing but pixels."""
    import io

    import numpy as np
    from PIL import Image
    from small_campaigns import linear_plan

    from dpal.campaign.campaign import Campaign
    from dpal.data.deep_images import Window
    from dpal.data.sources import open_pool

    rng = np.random.default_rng(1)
    values = {f"{number:02d}.png": rng.integers(0, 4096, (8, 8), dtype=np.uint16) for number in range(24)}
    (tmp_path / "scans").mkdir()
    for name, pixels in values.items():
        Image.fromarray(pixels).save(tmp_path / "scans" / name)
    options = {"folder": str(tmp_path / "scans"), "classes": ["no", "yes"], "size": 8, "channels": 1}
    pool = open_pool("image-folder", options | {"window": [2000, 3000]})
    campaign = Campaign.create(tmp_path / "c", plan=linear_plan(), pool=pool, model="small-cnn", oracle="files")
    campaign.run()
    person = add_person(campaign.reader, "A")
    desks = named_desks([campaign.folder], {campaign.folder: pool})
    web = Web(access=Access(desks=desks, is_https=False), campaign=campaign, people={"A": person})
    client = web.signed_in("A")
    assert read(client.get("/c/c/api/task"))["window"] == [2000, 3000]
    name = waiting(client)[0]
    pixels = values[str(campaign.identify([name])[name])]
    for asked, window in (({}, Window(2000, 3000)), ({"center": "500", "width": "100.5"}, Window(500, 100.5))):
        shown = client.get("/c/c/api/picture", params={"name": name, "number": "0"} | asked)
        np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(shown.content))), window.shown(pixels))
    for wrong in ({"center": "1"}, {"center": "1", "width": "0"}, {"center": "x", "width": "1"}, {"width": "nan"}):
        asked = {"name": name, "number": "0"} | wrong
        assert client.get("/c/c/api/picture", params=asked).status_code == 400
