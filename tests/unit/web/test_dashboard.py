"""The dashboard: for the operator alone, with the public and the internal kept apart."""

import json
from pathlib import Path

import pytest
from small_web import Web, read, said, small_web, waiting

from dpal.campaign.campaign import Campaign

INTERNAL = ("asked", "labelled", "waiting_for_labels", "skipped", "decided", "answered")


@pytest.fixture
def web(tmp_path: Path) -> Web:
    return small_web(tmp_path)


PLACES = ("/api/campaigns", "/api/campaigns/c", "/api/campaigns/c/what-if", "/api/campaigns/c/curve")
ACTIONS = ("start", "stop", "close-round", "people")


@pytest.mark.parametrize("who", [None, "A", "R", "O"])
def test_only_the_operator_comes_in(web: Web, who: str | None) -> None:
    client = web.client() if who is None else web.signed_in(who)
    for place in (*PLACES, "/api/campaigns/c/download/report.html"):
        assert client.get(place).status_code == 401, place
    for action in ACTIONS:
        assert client.post(f"/api/campaigns/c/{action}", json={"do": "add", "name": "X"}).status_code == 401
    assert len(read(web.signed_in("operator").get("/api/campaigns/c"))["people"]) == 4


def test_a_persons_token_is_not_the_operators(web: Web) -> None:
    client = web.client()
    token = web.access.desks["c"].token(web.people["A"])
    assert client.post("/session", json={"token": token}).status_code == 401
    assert client.post("/c/c/session", json={"token": web.access.operator_token}).status_code == 401


def test_all_campaigns_at_a_glance(web: Web) -> None:
    (summary,) = read(web.signed_in("operator").get("/api/campaigns"))
    assert summary["name"] == "c" and summary["status"]["stage"] == "waiting-for-labels"
    assert set(summary["internal"]["waiting"]) == {"A", "B"}
    # Nothing internal outside the part that says so.
    public = {name: value for name, value in summary.items() if name != "internal"}
    assert not any(f'"{word}"' in json.dumps(public) for word in INTERNAL)


def test_an_officer_sees_what_may_be_passed_on(web: Web) -> None:
    officer = web.signed_in("O")
    document = read(officer.get("/c/c/api/public"))
    assert not any(f'"{word}"' in json.dumps(document) for word in (*INTERNAL, "internal", "folder"))
    assert officer.get("/c/c/api/public/download/public-report.html").status_code == 200
    for file in ("report.html", "model.zip", "campaign.db", "x"):
        assert officer.get(f"/c/c/api/public/download/{file}").status_code == 404
    for who in ("A", "R"):
        assert web.signed_in(who).get("/c/c/api/public").status_code == 404


def test_people_are_added_renewed_and_removed(web: Web) -> None:
    client = web.signed_in("operator")

    def change(**body: object) -> int:
        return client.post("/api/campaigns/c/people", json=body).status_code

    def people() -> dict[str, dict[str, object]]:
        return {person["name"]: person for person in read(client.get("/api/campaigns/c"))["people"]}

    assert change(do="add", name=" Dr. Ng ", role="arbiter") == 200
    assert people()["Dr. Ng"]["role"] == "arbiter"
    before = people()["A"]["link"]
    assert change(do="renew", name="A") == 200 and people()["A"]["link"] != before
    assert change(do="remove", name="B") == 200 and "B" not in people()
    # Someone of the same name later has another link.
    link = web.access.desks["c"].token(web.people["B"])
    assert change(do="add", name="B") == 200 and link not in str(people()["B"]["link"])
    assert change(do="arrange", see="everyone", overlap=0.5, rule="unanimous") == 200
    assert read(client.get("/api/campaigns/c"))["arrangement"] == {
        "see": "everyone", "overlap": 0.5, "rule": "unanimous",
    }  # fmt: skip
    for wrong in (
        {"do": "add", "name": "a"}, {"do": "add", "name": ""}, {"do": "add", "name": 5}, {"do": "fire", "name": "A"},
        {"do": "add", "name": "Z", "role": "boss"}, {"do": "add", "name": "Z", "role": 5}, {"do": "remove"},
        {"do": "arrange", "overlap": 2}, {"do": "arrange", "overlap": "1"}, {"do": "arrange", "rule": "dice"}, {},
    ):  # fmt: skip
        assert change(**wrong) == 400, wrong


def test_scripts_in_names_come_back_as_text(web: Web) -> None:
    client = web.signed_in("operator")
    name = "<script>alert(1)</script>"
    assert client.post("/api/campaigns/c/people", json={"do": "add", "name": name}).status_code == 200
    response = client.get("/api/campaigns/c")
    assert response.headers["content-type"] == "application/json"
    assert name in [person["name"] for person in response.json()["people"]]


def test_a_round_is_closed_and_a_campaign_that_does_not_run_is_not_stopped(web: Web) -> None:
    client = web.signed_in("operator")
    assert read(client.post("/api/campaigns/c/stop", json={})) == {"stopping": False}
    expert = web.signed_in("A")
    read(said(expert, waiting(expert)[0], 1, "key-00000001"))
    left = read(client.post("/api/campaigns/c/close-round", json={}))["left_out"]
    assert left == len(web.campaign.state().groups[0]) - 1
    assert Campaign(web.campaign.folder).status().next_step == "train phase 1"


def test_agreement_and_who_is_waited_for(web: Web) -> None:
    operator = web.signed_in("operator")
    read(operator.post("/api/campaigns/c/people", json={"do": "arrange", "see": "everyone"}))
    for who in "AB":
        client = web.signed_in(who)
        for number, name in enumerate(sorted(waiting(client))[:4]):
            read(said(client, name, number % 2, f"key-{who}-{number:06d}"))
    campaign = read(operator.get("/api/campaigns/c"))
    assert campaign["agreement"]["questions"] == 4 and campaign["agreement"]["alpha"] == 1
    assert {person["name"]: person["answered"] for person in campaign["people"]} == {
        "A": 4,
        "B": 4,
        "R": None,
        "O": None,
    }


def test_what_officers_see_does_not_change_with_labels(web: Web) -> None:
    """Not the stage, not the ledger's hash in the certificate: only a released model changes it."""
    import io
    import zipfile

    from small_campaigns import linear_opened

    officer = web.signed_in("O")

    def seen() -> tuple[object, ...]:
        certificate = officer.get("/c/c/api/public/download/certificate.zip")
        with zipfile.ZipFile(io.BytesIO(certificate.content)) as archive:
            content = archive.read("certificate.pdf.json")
        return (
            read(officer.get("/c/c/api/public")),
            content,
            officer.get("/c/c/api/public/download/public-report.html").text,
        )

    before = seen()
    assert before[0]["status"]["stage"] == "under way" and before[0]["status"]["next_step"] == "phase 1 of 3"
    for name in web.campaign.state().groups[0]:
        web.campaign.add_answers({name: "yes"}, source="test")
        assert seen() == before
    linear_opened(web.campaign.folder).run(go_on=True)
    after = seen()
    assert after[0]["status"]["next_step"] == "phase 2 of 3" and after[1] != before[1] and after[2] != before[2]
