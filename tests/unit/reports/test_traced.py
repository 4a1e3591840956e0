"""Every line of the certificate and of the report is traced in docs/reports.md to where it comes from."""

import io
import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from small_campaigns import linear_held_out, linear_model, linear_plan, linear_pool
from tiny_encoder import encoded_campaign

from dpal.audit.attack import Effort, Target
from dpal.audit.audits import audit
from dpal.audit.results import LIMITS
from dpal.campaign.campaign import Campaign
from dpal.errors import DpalError, InvalidArgument
from dpal.reports.assumptions import assumptions_of
from dpal.reports.campaign_report import write_report
from dpal.reports.campaign_table import status_view
from dpal.reports.certificate import certificate_of, verify_certificate
from dpal.reports.certificate_pdf import pages
from dpal.reports.signature import new_keys, private_key, signed
from dpal.selection import SELECTIONS

DOCUMENT = (Path(__file__).parents[3] / "docs/reports.md").read_text(encoding="utf-8")


def traced(title: str) -> set[str]:
    """The names in the first column of the table under these words; each row says where they come from."""
    start = DOCUMENT.index(f"\n{title}:\n")
    names: set[str] = set()
    for row in re.match(r"\n.*\n\n((?:\|.*\n)+)", DOCUMENT[start:])[1].splitlines()[2:]:  # type: ignore[index]
        first, origin = (cell.strip() for cell in row.strip("|").split(" | "))
        assert len(origin) > 3, row
        names |= {first, *(part.strip().strip("`") for part in first.split(","))}
    return names


@pytest.fixture(scope="module", params=["inside", "released"])
def campaign(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traced") / "clinic"
    Campaign.create(
        folder,
        plan=linear_plan(selections=request.param),
        pool=linear_pool(),
        model=linear_model(),
        oracle="simulated",
        evaluation=linear_held_out(40),
        evaluation_is_public=True,
    ).run(go_on=True)
    return folder


@pytest.fixture(scope="module")
def certificate(campaign: Path) -> dict[str, Any]:
    keys = campaign.parent / "keys"
    new_keys(keys)
    return signed(certificate_of(campaign), private_key(keys / "private.pem"))


def fields(document: dict[str, Any]) -> set[str]:
    """Names at the top, and one level below where they are the certificate's own; the plan has its own document."""
    found = set(document)
    for name in ("groups", "mechanisms"):
        found |= {f"{name}.{key}" for each in document[name] for key in each}
    return found | {f"charges.{key}" for key in document["charges"]}


def untraced_lines(document: dict[str, Any]) -> set[str]:
    """Lines on the certificate's pages that start with a heading or a label that the table does not have."""
    shown = {
        text.get_text() for page in pages(document) for text in page.texts if text.get_gid() in ("heading", "label")
    }
    assert len(shown) > 10
    return shown - traced("Lines on the certificate's pages")


def test_every_field_of_the_certificate(certificate: dict[str, Any]) -> None:
    assert fields(certificate) - traced("Fields of the certificate's JSON file") == set()


@pytest.mark.parametrize("selection", SELECTIONS)
def test_every_parameter_of_every_selection(selection: str) -> None:
    plan = linear_plan(selection=selection)
    names = {f"mechanisms.{name}" for each in plan.selections for name in each.to_json()}
    assert names
    assert names - traced("Fields of the certificate's JSON file") == set()


def test_every_line_on_the_certificates_pages(certificate: dict[str, Any]) -> None:
    assert untraced_lines(certificate) == set()


@pytest.mark.parametrize("unit", ["record", "patient"])
@pytest.mark.parametrize("promise", ["inside", "released"])
def test_every_assumption(promise: str, unit: str) -> None:
    table = traced("Assumptions, on certificate and report")
    for assumption in assumptions_of(promise=promise, accountant="pld", foreign_code=(), unit=unit):
        assert assumption in table
    (foreign,) = set(assumptions_of(promise=promise, accountant="rdp", foreign_code=("a:b",), unit=unit)) - set(
        assumptions_of(promise=promise, accountant="rdp", foreign_code=(), unit=unit)
    )
    assert foreign.removesuffix("a:b.") + "…" in table


def headings(page: str) -> set[str]:
    """Headings, columns, and rows that start with words."""
    page = re.sub(r"(?s)<svg.*?</svg>", "", page)
    found = re.findall(r"<h2>(.*?)</h2>", page) + re.findall(r"<th>(.*?)</th>", page)
    found += [first for first in re.findall(r"<tr><td>(.*?)</td>", page) if not first.isdigit()]
    return {unescape(each) for each in found if each}


def test_every_line_of_the_report(campaign: Path) -> None:
    path = write_report(campaign, campaign / "reports/report.html")
    shown = headings(path.read_text(encoding="utf-8"))
    assert {"Privacy", "checked", "agreement", "skipped", "seconds"} <= shown
    assert shown - traced("Lines of the report") == set()
    data = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    named = set(re.findall(r"`(\w+)`", DOCUMENT[DOCUMENT.index("Its JSON file has the same under these names") :]))
    assert set(data) - named == set()


def test_what_an_encoder_was_trained_on_is_said_everywhere(tmp_path: Path) -> None:
    folder = tmp_path / "encoded"
    campaign = encoded_campaign(folder, seed=None, not_private=False)
    campaign.run()
    trained_on = "nothing: its weights are constants"
    words = f"The features come from a public encoder, tiny_encoder:TinyEncoder, trained on {trained_on}."
    assert campaign.status().encoder == words
    terminal = Console(width=200, record=True, file=io.StringIO())
    terminal.print(status_view(campaign.status()))
    assert words in terminal.export_text()
    page = write_report(folder, folder / "reports/report.html", internal=False).read_text(encoding="utf-8")
    assert words in unescape(page)
    assert headings(page) - traced("Lines of the report") == set()
    certificate = certificate_of(folder)
    assert certificate["encoder"]["in_words"] == words
    assert fields(certificate) - traced("Fields of the certificate's JSON file") == set()
    assert untraced_lines(certificate) == set()
    shown = " ".join(text.get_text() for page in pages(certificate) for text in page.texts)
    assert f"trained on {trained_on}" in shown
    verify_certificate(certificate)
    edited = {**certificate, "encoder": certificate["encoder"] | {"trained_on": "this very pool"}}
    with pytest.raises(InvalidArgument, match="the certificate: encoder"):
        verify_certificate(edited)
    without = {name: value for name, value in certificate.items() if name != "encoder"}
    with pytest.raises(InvalidArgument, match="checks"):
        verify_certificate(without)


def test_a_line_that_nobody_traced_is_found(certificate: dict[str, Any]) -> None:
    assert fields(certificate | {"remark": "all is well"}) - traced("Fields of the certificate's JSON file") == {
        "remark"
    }
    assert headings("<h2>Praise</h2><tr><td>stars</td>") - traced("Lines of the report") == {"Praise", "stars"}


def test_what_attacks_found_is_stated_as_what_it_is(campaign: Path, tmp_path: Path) -> None:
    plan = linear_plan(selections=Campaign(campaign).plan.setting.promise)
    result = audit(Target(plan=plan, device="cpu"), Effort(canaries=400, looks=100), names=["training"])
    result = replace(result, plan_hash=Campaign(campaign).state().created.plan_hash)
    certificate = certificate_of(campaign, audit=result)
    section = certificate["audit"]
    assert section["in_words"] == f"{result.verdict} {LIMITS}"
    assert result.strongest is not None and section["epsilon_ruled_out"] <= result.strongest.epsilon_bound
    assert fields(certificate) - traced("Fields of the certificate's JSON file") == set()
    assert untraced_lines(certificate) == set()
    shown = " ".join(text.get_text() for page in pages(certificate) for text in page.texts)
    assert "never that it holds" in " ".join(shown.split())
    verify_certificate(certificate)
    better = {**certificate, "audit": section | {"epsilon_ruled_out": 0.0}}
    with pytest.raises(InvalidArgument, match="the certificate: audit"):
        verify_certificate(better)
    with pytest.raises(InvalidArgument, match="an audit of this campaign's plan"):
        certificate_of(campaign, audit=replace(result, plan_hash="0" * 64))
    broken = replace(result, findings=(replace(result.findings[0], broken=True),))
    with pytest.raises(DpalError, match=r"BROKEN.*No certificate was written"):
        certificate_of(campaign, audit=broken)
    above = replace(result, findings=(replace(result.findings[0], epsilon_bound=99.0),))
    with pytest.raises(DpalError, match=r"UNCLEAR.*No certificate was written"):
        certificate_of(campaign, audit=above)
    # What was found about a single step has a claim of its own, and is not stated as a bound on the plan.
    step = replace(result.findings[0], attack="lone-canary", epsilon_bound=50.0, claimed_epsilon=60.0)
    step = replace(step, is_about_plan=False)
    with_step = certificate_of(campaign, audit=replace(result, findings=(*result.findings, step)))
    assert with_step["audit"]["epsilon_ruled_out"] == section["epsilon_ruled_out"]
