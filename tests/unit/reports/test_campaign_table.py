from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console, RenderableType
from small_campaigns import linear_model, linear_plan, linear_pool

from dpal.campaign.campaign import Campaign
from dpal.planning.promises import WORDS
from dpal.reports.campaign_table import INTERNAL, NOT_PRIVATE, status_view, verification_view


def shown(view: RenderableType) -> str:
    console = Console(file=StringIO(), width=200)
    console.print(view)
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("promise", ["inside", "released"])
def test_numbers_of_selected_records_are_where_the_promise_allows(tmp_path: Path, promise: str) -> None:
    plan = linear_plan(selections=promise)
    campaign = Campaign.create(tmp_path / "c", plan=plan, pool=linear_pool(), model=linear_model(), oracle="simulated")
    campaign.run()
    public, internal = shown(status_view(campaign.status())).split(INTERNAL)
    assert WORDS[promise].short in public
    asked = f"{sum(len(group) for group in campaign.state().groups)} asked about"
    assert (asked in public, asked in internal) == (promise == "released", promise == "inside")
    assert WORDS[promise].short in shown(verification_view(campaign.verify()))


def test_status_and_verification_round_up_and_mark_what_is_internal(tmp_path: Path) -> None:
    campaign = Campaign.create(
        tmp_path / "[red]c", plan=linear_plan(), pool=linear_pool(), model=linear_model(), oracle="simulated"
    )
    campaign.run()
    status, verification = campaign.status(), campaign.verify()
    text = shown(status_view(replace(status, epsilon_spent=7.00001)))
    assert "ε 7.0001 of 8" in text
    assert "[red]c" in text
    assert text.index(INTERNAL) < text.index("given")
    assert NOT_PRIVATE not in text
    assert "running: phase 2" in shown(status_view(status, "phase 2"))
    checks = shown(verification_view(replace(verification, epsilon_spent=7.0000001)))
    assert "ε = 7.000001 of 8" in checks
    assert "verified" in checks
    assert "NOT VERIFIED" in shown(
        verification_view(replace(verification, checks=(replace(verification.checks[0], holds=False),)))
    )
    assert NOT_PRIVATE in shown(verification_view(replace(verification, is_private=False)))
