"""The page of an audit: verdict first, nothing loaded from outside, and the same numbers as JSON."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from audited_plans import target
from rich.console import Console

from dpal.audit.attack import Effort
from dpal.audit.audits import ATTACKS, audit
from dpal.audit.results import LIMITS, Audit, read_audit
from dpal.errors import InvalidArgument
from dpal.reports.audit_report import audit_table, json_file_of, write_audit


@pytest.fixture(scope="module")
def result() -> Audit:
    return audit(target(), Effort(canaries=1_000, looks=200), names=["training", "cut"])


def test_the_page(result: Audit, tmp_path: Path) -> None:
    page = tmp_path / "audit.html"
    write_audit(result, page)
    text = page.read_text(encoding="utf-8")
    assert text.index(result.verdict.replace("ε ≤", "ε ≤")) < text.index("What each attack found")
    assert LIMITS in text
    assert text.count("<svg") == 2
    assert "http" not in text.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    ).replace("https://matplotlib.org", "")
    assert read_audit(json_file_of(page)) == result
    assert json.loads(json_file_of(page).read_text(encoding="utf-8"))["broken"] is False


def test_what_each_claim_is_about_and_a_bound_above_it(result: Audit) -> None:
    assert {finding.attack: finding.is_about_plan for finding in result.findings} == {"training": True, "cut": False}
    first = result.findings[0]
    above = replace(result, findings=(replace(first, epsilon_bound=first.claimed_epsilon + 0.019),))
    console = Console(width=100, record=True)
    console.print(audit_table(above))
    text = console.export_text()
    # Rounded down: a lower bound that is rounded up says more than was proven.
    assert "unclear" in text and "within" not in text and "3.01" in text


def test_a_broken_claim_is_red(result: Audit, tmp_path: Path) -> None:
    broken = replace(result, findings=(replace(result.findings[0], broken=True),))
    write_audit(broken, tmp_path / "audit.html")
    text = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert 'class="promise bad"' in text
    assert '<td class="no">BROKEN</td>' in text


def test_names_of_files_are_escaped_and_checked(result: Audit, tmp_path: Path) -> None:
    write_audit(replace(result, machine="<b>cpu</b>"), tmp_path / "audit.html")
    assert "<b>cpu</b>" not in (tmp_path / "audit.html").read_text(encoding="utf-8")
    with pytest.raises(InvalidArgument, match="html"):
        write_audit(result, tmp_path / "audit.pdf")


def test_the_table_fits_a_terminal(result: Audit) -> None:
    console = Console(width=80, record=True)
    longest = max(ATTACKS, key=len)
    wide = replace(result.findings[0], attack=longest, guesses=200_000, gaussian_bound=12.34, broken=True)
    console.print(audit_table(replace(result, findings=(*result.findings, wide))))
    text = console.export_text()
    assert longest in text and "200,000" in text and "BROKEN" in text
    assert "training" in text and "within" in text and "…" not in text
