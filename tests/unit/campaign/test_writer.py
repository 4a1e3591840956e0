"""The writer: one at a time, and no fact gets in that a reader would refuse."""

from pathlib import Path

import pytest
from small_campaigns import linear_campaign

from dpal.campaign.facts import Closed, Withdrawn
from dpal.campaign.lock import only_writer
from dpal.campaign.reader import Reader
from dpal.campaign.rollback_guard import noted_newest
from dpal.campaign.step_randomness import SealedKeys
from dpal.campaign.writer import writing
from dpal.errors import CampaignBusy, DamagedCampaign


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    linear_campaign(tmp_path / "c")
    return tmp_path / "c"


def test_a_fact_that_no_reader_would_accept_is_not_recorded(folder: Path) -> None:
    with writing(Reader(folder)) as writer, pytest.raises(DamagedCampaign, match="closes a labelling round"):
        writer.add(Closed(group=7), seal=b"k" * 32)
    assert Reader(folder).state().last == 1
    assert SealedKeys(folder).charges() == []


def test_a_fact_is_noted_and_known_at_once(folder: Path) -> None:
    reader = Reader(folder)
    with writing(reader) as writer:
        assert writer.add(Withdrawn(ids=("r01",), reason="")) == 2
        assert writer.state.withdrawn == {"r01"}
        assert noted_newest(folder).hash == writer.state.last_hash
        assert not writer.state_at(1).withdrawn
    assert reader.known_state() == Reader(folder).state()


def test_a_second_writer_is_refused(folder: Path) -> None:
    with only_writer(folder), pytest.raises(CampaignBusy), writing(Reader(folder)):
        pytest.fail("two writers at once")
    # The lock is free again, also after an error inside.
    with pytest.raises(ZeroDivisionError), writing(Reader(folder)):
        _ = 1 / 0
    with writing(Reader(folder)) as writer:
        assert writer.add(Withdrawn(ids=("r01",), reason="")) == 2


def test_a_folder_that_is_not_a_campaign_gets_no_lock_file(tmp_path: Path) -> None:
    with pytest.raises(DamagedCampaign), writing(Reader(tmp_path)):
        pytest.fail("there is nothing to write to")
    assert list(tmp_path.iterdir()) == []


def test_whoever_opens_it_for_writing_clears_up(folder: Path) -> None:
    SealedKeys(folder).write(9, b"k" * 32)
    with writing(Reader(folder)):
        assert SealedKeys(folder).charges() == []
