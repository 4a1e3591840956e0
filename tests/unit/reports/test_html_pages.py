"""Pages escape every name that a user can choose, and refuse names that their templates misspell."""

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from jinja2 import UndefinedError
from small_campaigns import linear_held_out, linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.reports.campaign_data import report_data
from dpal.reports.campaign_report import as_html, write_report
from dpal.reports.comparison import run_of
from dpal.reports.comparison_report import write_comparison
from dpal.reports.html_pages import inline_svg, render
from dpal.selection.acquisition import Entropy

HOSTILE = '<script>alert("1")</script>'
# A folder's name has no slash.
HOSTILE_FOLDER = "<script>alert(1)<script>"


class Own(Entropy):
    """An acquisition function of the user's own, which campaigns record by its import path."""


def unescaped(page: str) -> list[str]:
    """Everything in the page that would run, or that starts a tag we do not use."""
    return re.findall(r"<script|onerror=|onload=|<img", page, re.IGNORECASE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished campaign with hostile names of folder, classes, dataset, ids, acquisition path and reasons."""
    folder = tmp_path_factory.mktemp("pages") / HOSTILE_FOLDER
    classes = (HOSTILE, "no")

    def named(pool: Any) -> Any:
        return replace(pool, name=HOSTILE, classes=classes)

    Own.__qualname__ = HOSTILE
    campaign = Campaign.create(
        folder,
        plan=linear_plan(),
        pool=named(linear_pool()),
        model=linear_model(),
        acquisition=Own(classes=2),
        evaluation=named(linear_held_out()),
        evaluation_is_public=True,
        oracle="simulated",
    )
    Campaign(folder).withdraw([str(linear_pool().ids[0])], reason=HOSTILE)
    campaign.run(go_on=True)
    return folder


def test_a_report_escapes_every_name(folder: Path) -> None:
    page = write_report(folder, folder.parent / "report.html", baseline=folder).read_text(encoding="utf-8")
    assert unescaped(page) == []
    assert HOSTILE_FOLDER in unescape(page)
    # The import path of code that is not dpal's is among the assumptions.
    assert f":{HOSTILE}" in unescape(page)


def test_a_report_escapes_every_text_of_its_data(folder: Path) -> None:
    """Also texts that no command lets through today: configuration, stage, remarks, details of checks."""

    def hostile(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: hostile(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [hostile(inner) for inner in value]
        return f"{value}{HOSTILE}" if isinstance(value, str) else value

    data = report_data(folder)
    planted = hostile(data)
    planted["plan"] = data["plan"]
    page = as_html(planted)
    assert unescaped(page) == []
    assert unescape(page).count(HOSTILE) > 30


def test_a_comparison_escapes_every_name(folder: Path) -> None:
    runs = [run_of(folder, HOSTILE), run_of(folder)]
    path = write_comparison(runs, folder.parent / f"{HOSTILE_FOLDER}.html")
    page = path.read_text(encoding="utf-8")
    assert unescaped(page) == []
    assert HOSTILE in unescape(page)
    assert HOSTILE_FOLDER in unescape(page)
    # Viewers of Markdown pass HTML on.
    assert unescaped(path.with_suffix(".md").read_text(encoding="utf-8")) == []


def test_the_search_would_find_a_name_that_is_not_escaped(folder: Path) -> None:
    """A twin with a planted fault: a name declared to be markup."""
    data = report_data(folder) | {"campaign": inline_svg(HOSTILE)}
    assert unescaped(as_html(data)) == ["<script"] * 2


def test_a_template_with_a_missing_value_fails() -> None:
    with pytest.raises(UndefinedError):
        render("comparison.html", title="t")


def test_pages_load_nothing_from_outside(folder: Path) -> None:
    page = as_html(json.loads(json.dumps(report_data(folder))))
    without_figures = re.sub(r"(?s)<svg.*?</svg>", "", page)
    assert not re.search(r"https?:|src=|@import|url\(", without_figures)
    # Figures name standards by their addresses and refer only to themselves.
    assert {target[0] for target in re.findall(r'(?:href|src)="([^"]*)"', page)} == {"#"}
