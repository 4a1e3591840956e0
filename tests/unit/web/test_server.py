"""Addresses, links, static files, and where the server agrees to listen."""

import re
import signal
from importlib.resources import files
from pathlib import Path

import pytest
import uvicorn
from small_web import Web, small_web

from dpal.errors import InvalidArgument
from dpal.web.server import Address, bound, checked_public_url, links, stopped_by_ctrl_c


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Web:
    return small_web(tmp_path_factory.mktemp("web"))


def test_everyone_has_a_link_of_their_own(web: Web) -> None:
    found = dict(links(web.access, "http://127.0.0.1:8000"))
    assert len(found) == 5 and len(set(found.values())) == 5
    assert found["A (expert, c)"].startswith("http://127.0.0.1:8000/c/c/#token=")
    assert found["you, who run the campaigns"].startswith("http://127.0.0.1:8000/#token=")


def test_addresses() -> None:
    local = Address(host="127.0.0.1", port=8000)
    assert local.base == "http://127.0.0.1:8000"
    assert local.origins == {"http://127.0.0.1:8000", "http://localhost:8000", "http://[::1]:8000"}
    assert "http://localhost" in Address(host="127.0.0.1", port=80).origins
    assert Address(host="::1", port=8000).base == "http://[::1]:8000"
    public = Address(host="127.0.0.1", port=8000, public_url="https://label.clinic.org")
    assert public.origins == local.origins | {"https://label.clinic.org"}


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("https://Label.Clinic.org/", "https://label.clinic.org"),
        ("HTTPS://x:443", "https://x"),
        ("http://x:80", "http://x"),
        ("https://x:8443", "https://x:8443"),
        ("https://klinik-münchen.example", "https://xn--klinik-mnchen-3ob.example"),
        ("http://[::2]:9000", "http://[::2]:9000"),
    ],
)
def test_public_urls_are_as_browsers_name_them(typed: str, named: str) -> None:
    assert checked_public_url(typed, "127.0.0.1") == named


@pytest.mark.parametrize(
    "url",
    ["label.clinic.org", "ftp://x", "https://", "https://x/dpal", "https://x?a=1", "https://me@x", "javascript:1"],
)
def test_public_urls_are_addresses_without_a_path(url: str) -> None:
    with pytest.raises(InvalidArgument, match="--public-url"):
        checked_public_url(url, "127.0.0.1")


def test_other_machines_need_an_address_to_type() -> None:
    assert checked_public_url(None, "127.0.0.1") is None
    with pytest.raises(InvalidArgument, match="unless --public-url"):
        checked_public_url(None, "0.0.0.0")  # noqa: S104
    assert checked_public_url("http://10.0.0.5:8000", "0.0.0.0") == "http://10.0.0.5:8000"  # noqa: S104


def test_a_port_that_is_taken_says_so() -> None:
    with bound("127.0.0.1", 0) as first:
        first.listen()
        with pytest.raises(InvalidArgument, match=r"--port is .*is dpal serve running already"):
            bound("127.0.0.1", first.getsockname()[1])


def test_static_files_are_those_of_the_package(web: Web) -> None:
    client = web.client()
    names = [file.name for file in files("dpal.web").joinpath("static").iterdir()]
    assert {"label.js", "dashboard.js", "style.css", "icon.svg"} <= set(names)
    for name in names:
        response = client.get(f"/static/{name}")
        assert response.status_code == 200
        assert response.headers["content-type"].partition(";")[0] in ("text/javascript", "text/css", "image/svg+xml")


def test_pages_load_nothing_from_elsewhere_and_have_no_inline_code(web: Web) -> None:
    client = web.client()
    for place in ("/", "/c/c/", "/c/c/public"):
        page = client.get(place).text
        assert "http" not in page.replace("http-equiv", "")
        assert "<style" not in page and "style=" not in page and not re.search(r"\son\w+\s*=", page)
        assert page.count("<script") == page.count('<script type="module" src="/static/')


def test_no_script_builds_html_from_texts() -> None:
    for file in Path(str(files("dpal.web").joinpath("static"))).glob("*.js"):
        code = file.read_text(encoding="utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert word not in code, file.name


def test_ctrl_c_before_the_server_listens_stops_it_without_a_word() -> None:
    before = signal.getsignal(signal.SIGINT)
    server = uvicorn.Server(uvicorn.Config("nowhere:app"))
    with stopped_by_ctrl_c(server):
        signal.raise_signal(signal.SIGINT)
        assert server.should_exit
    assert signal.getsignal(signal.SIGINT) is before
