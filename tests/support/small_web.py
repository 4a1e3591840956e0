"""A served campaign within this process: a client that sends what a browser sends, and its people."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from small_campaigns import linear_campaign, linear_pool
from starlette.testclient import TestClient

from dpal.campaign.arranging import add_person
from dpal.campaign.campaign import Campaign
from dpal.campaign.reader import Reader
from dpal.labels.people import Person
from dpal.web.access import Access, named_desks
from dpal.web.server import Address, application

ADDRESS = Address(host="127.0.0.1", port=8000)


@dataclass
class Web:
    """The application, its campaign, and its people by name."""

    access: Access
    campaign: Campaign
    people: dict[str, Person]

    def client(self) -> TestClient:
        """A browser that nobody has signed in with."""
        headers = {"origin": ADDRESS.base, "sec-fetch-site": "same-origin"}
        app = application(self.access, ADDRESS.origins)
        return TestClient(app, base_url=ADDRESS.base, headers=headers, raise_server_exceptions=False)

    def signed_in(self, who: str) -> TestClient:
        client = self.client()
        if who == "operator":
            done = client.post("/session", json={"token": self.access.operator_token})
        else:
            done = client.post("/c/c/session", json={"token": self.access.desks["c"].token(self.people[who])})
        assert done.status_code == 200, done.text
        return client


def small_web(folder: Path, **options: Any) -> Web:
    """A campaign that waits for labels, with two experts, an arbiter and an officer.

    Each question is one expert's by chance; both have some.
    """
    while True:
        web = _made(folder, **options)
        if all(len(waiting(web.signed_in(who))) > 1 for who in "AB"):
            return web
        shutil.rmtree(web.campaign.folder)


def _made(folder: Path, **options: Any) -> Web:
    campaign = linear_campaign(folder / "c", oracle="files", **options)
    campaign.run()
    reader = Reader(campaign.folder)
    roles = {"A": "expert", "B": "expert", "R": "arbiter", "O": "officer"}
    people = {name: add_person(reader, name, role) for name, role in roles.items()}
    pool = options.get("pool") or linear_pool()
    desks = named_desks([campaign.folder], {campaign.folder: pool})
    return Web(access=Access(desks=desks, is_https=False), campaign=campaign, people=people)


def waiting(client: TestClient) -> list[str]:
    """The names of the questions that wait for whoever signed in."""
    return read(client.get("/c/c/api/queue"))["waiting"]


def said(client: TestClient, name: str, answer: object, key: str, **more: object) -> httpx.Response:
    return client.post("/c/c/api/answer", json={"question": name, "answer": answer, "key": key, **more})


def read(response: httpx.Response) -> Any:
    assert response.status_code == 200, response.text
    return response.json()
