"""Names of campaigns in addresses, and the operator's token."""

from pathlib import Path

import pytest
from small_web import Web, small_web

from dpal.campaign.arranging import renew_operators_link
from dpal.campaign.reader import Reader
from dpal.errors import DamagedCampaign, InvalidArgument
from dpal.web.access import Access, named_desks


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Web:
    return small_web(tmp_path_factory.mktemp("web"))


def test_names_are_plain_and_differ(web: Web, tmp_path: Path) -> None:
    folders = []
    for place, name in (("a", "Ärzte & Co."), ("b", "Ärzte & Co."), ("a", "…")):
        folder = tmp_path / place / name
        folder.parent.mkdir(exist_ok=True)
        folder.symlink_to(web.campaign.folder)
        folders.append(folder)
    assert list(named_desks(folders)) == ["rzte-co", "rzte-co-2", "campaign"]


def test_a_campaign_is_served_once_and_must_be_one(web: Web, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="given once"):
        named_desks([web.campaign.folder, web.campaign.folder])
    with pytest.raises(DamagedCampaign, match="not a campaign"):
        named_desks([tmp_path])
    assert list(tmp_path.iterdir()) == []


def test_the_operators_token_takes_the_keys_of_all_campaigns(web: Web, tmp_path: Path) -> None:
    other = small_web(tmp_path)
    both = Access(desks={"c": web.access.desks["c"], "d": other.access.desks["c"]}, is_https=False)
    tokens = {access.operator_token for access in (web.access, other.access, both)}
    assert len(tokens) == 3 and all(len(token) == 64 for token in tokens)
    assert web.access.operator_token == Access(desks=web.access.desks, is_https=True).operator_token


def test_cookies_are_for_tls_only_where_there_is_tls(web: Web) -> None:
    for is_https in (False, True):
        access = Access(desks=web.access.desks, is_https=is_https)
        client = Web(access=access, campaign=web.campaign, people=web.people).client()
        done = client.post("/session", json={"token": access.operator_token})
        assert ("Secure" in done.headers["set-cookie"]) == is_https


def test_the_operators_link_can_be_ended_too(tmp_path: Path) -> None:
    web = small_web(tmp_path)
    client, old = web.signed_in("operator"), web.access.operator_token
    assert client.get("/api/campaigns").status_code == 200
    renew_operators_link(Reader(web.campaign.folder))
    assert client.get("/api/campaigns").status_code == 401
    assert web.client().post("/session", json={"token": old}).status_code == 401
    assert web.signed_in("operator").get("/api/campaigns").status_code == 200
    # Everyone else's link goes on, and the new one lasts once it is a fact.
    new = web.access.operator_token
    assert web.signed_in("A").get("/c/c/api/task").status_code == 200
    web.campaign.take_in()
    assert web.access.operator_token == new != old and web.campaign.verify().holds
