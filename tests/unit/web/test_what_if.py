"""Another plan in a moment, certified, and nothing changed."""

import pytest
from small_campaigns import linear_campaign

from dpal.campaign.campaign import Campaign
from dpal.errors import InvalidArgument
from dpal.web.what_if import what_if


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return linear_campaign(tmp_path_factory.mktemp("c") / "c")


def test_other_numbers_give_another_plan(campaign: Campaign) -> None:
    before = campaign.state().last_hash
    answer = what_if(campaign.folder, {"epsilon": "4", "labels": "12", "phases": "1"})
    assert answer["plan"]["epsilon"] == 4 and sum(answer["plan"]["labels"]) == 12 and len(answer["plan"]["steps"]) == 1
    assert "<svg" in answer["picture"]
    more = what_if(campaign.folder, {"epsilon": "8", "labels": "12", "phases": "1"})
    assert more["plan"]["noise"][0] < answer["plan"]["noise"][0]
    assert campaign.state().last_hash == before


def test_what_cannot_be_planned_is_said_in_words(campaign: Campaign) -> None:
    answer = what_if(campaign.folder, {"epsilon": "0.01", "labels": "2", "phases": "6"})
    assert "problem" in answer and "plan" not in answer


@pytest.mark.parametrize(
    "numbers",
    [{"epsilon": "x"}, {"epsilon": "nan"}, {"epsilon": "0"}, {"epsilon": "1e9"}, {"labels": "25"}, {"phases": "21"}],
)
def test_numbers_outside_their_range_are_refused(campaign: Campaign, numbers: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument):
        what_if(campaign.folder, numbers)


def test_the_campaigns_own_numbers_give_its_own_plan(campaign: Campaign) -> None:
    plan = campaign.plan
    labels = [group.size for group in plan.groups]
    answer = what_if(campaign.folder, {})
    assert answer["plan"]["is_own"] and answer["plan"]["labels"] == labels
    assert answer["plan"]["steps"] == [phase.steps for phase in plan.phases] and "<svg" in answer["picture"]
    assert not what_if(campaign.folder, {"epsilon": "4"})["plan"]["is_own"]
