"""Files that are made when they are asked for."""

import io
import json
import zipfile
from pathlib import Path

import pytest
from small_campaigns import linear_held_out
from small_web import Web, small_web

from dpal.errors import NotForYou
from dpal.web.downloads import curve_svg, written


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Web:
    options = {"evaluation": linear_held_out(), "evaluation_is_public": True}
    made = small_web(tmp_path_factory.mktemp("web"), **options)
    made.campaign.add_answers(dict.fromkeys(made.campaign.state().groups[0], "yes"), source="test")
    made.campaign.run(go_on=True)
    return made


def test_the_public_report_says_less_than_the_internal_one(web: Web) -> None:
    client = web.signed_in("operator")
    internal, public = (
        client.get(f"/api/campaigns/c/download/{file}") for file in ("report.html", "public-report.html")
    )
    assert internal.status_code == public.status_code == 200
    assert len(internal.text) > len(public.text) and "<html" in public.text
    assert internal.headers["content-disposition"] == 'attachment; filename="report.html"'


def test_a_certificate_verifies(web: Web, tmp_path: Path) -> None:
    from dpal.reports.certificate import verify_certificate

    response = web.signed_in("operator").get("/api/campaigns/c/download/certificate.zip")
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        assert sorted(archive.namelist()) == ["certificate.pdf", "certificate.pdf.json"]
        verify_certificate(json.loads(archive.read("certificate.pdf.json")))


def test_the_curve_is_there_once_something_was_measured(web: Web, tmp_path: Path) -> None:
    response = web.signed_in("operator").get("/api/campaigns/c/curve")
    assert response.status_code == 200 and response.text.startswith("<svg")
    assert response.headers["content-type"].startswith("image/svg+xml")
    other = small_web(tmp_path)
    assert curve_svg(other.campaign.folder, baseline=None) is None
    assert curve_svg(web.campaign.folder, baseline=other.campaign.folder) is not None


def test_other_files_are_not_made(web: Web, tmp_path: Path) -> None:
    with pytest.raises(NotForYou):
        written(web.campaign.folder, "campaign.db", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_curve_certifies_nothing(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes seconds for a real plan, in which answers would wait."""

    def slow(*words: object) -> None:
        raise AssertionError("a plan was certified")

    for place in ("dpal.planning.certification.certified", "dpal.campaign.verification.verified"):
        monkeypatch.setattr(place, slow)
    assert str(curve_svg(web.campaign.folder, baseline=web.campaign.folder)).startswith("<svg")
