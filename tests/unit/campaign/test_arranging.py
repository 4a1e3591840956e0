"""Who labels can be changed at any time, also while another process holds the campaign."""

from pathlib import Path

import pytest
from small_campaigns import linear_campaign

from dpal.campaign.arranging import add_person, arrange, current_arrangement, remove_person, renew_link
from dpal.campaign.campaign import Campaign
from dpal.campaign.lock import only_writer
from dpal.campaign.reader import Reader
from dpal.errors import DamagedCampaign, InvalidArgument


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return linear_campaign(tmp_path / "c")


def test_changes_hold_at_once_and_become_facts_later(campaign: Campaign) -> None:
    reader = Reader(campaign.folder)
    with only_writer(campaign.folder):
        person = add_person(reader, "A")
        arrange(reader, see="everyone", rule="unanimous")
        assert current_arrangement(reader).people == (person,)
    assert campaign.state().arrangement.people == ()
    campaign.take_in()
    assert campaign.state().arrangement == current_arrangement(reader)
    assert (campaign.state().arrangement.see, campaign.state().arrangement.rule) == ("everyone", "unanimous")
    assert campaign.verify().holds


def test_links_are_never_used_again(campaign: Campaign) -> None:
    reader = Reader(campaign.folder)
    first = add_person(reader, "A")
    second = renew_link(reader, "A")
    remove_person(reader, "A")
    third = add_person(reader, "A")
    assert len({first.generation, second.generation, third.generation}) == 3


def test_what_cannot_be_is_refused_and_not_written(campaign: Campaign, tmp_path: Path) -> None:
    reader = Reader(campaign.folder)
    add_person(reader, "Kim")
    before = reader.folder.joinpath("inbox.db").stat().st_size
    for change in (
        lambda: add_person(reader, "kim"),
        lambda: add_person(reader, "Lee", "boss"),
        lambda: remove_person(reader, "Lee"),
        lambda: renew_link(reader, "Lee"),
        lambda: arrange(reader, overlap=2),
        lambda: arrange(reader, see="nobody"),
    ):
        with pytest.raises(InvalidArgument):
            change()
    assert len(current_arrangement(reader).people) == 1
    assert reader.folder.joinpath("inbox.db").stat().st_size == before
    with pytest.raises(DamagedCampaign):
        add_person(Reader(tmp_path), "A")
    assert not (tmp_path / "inbox.db").exists()
