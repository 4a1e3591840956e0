"""Waiting for people: what they answer is taken in, and the campaign is free for others while nothing comes."""

import threading
from pathlib import Path

import pytest
from small_campaigns import linear_campaign, linear_pool

from dpal.campaign import waiting
from dpal.campaign.inbox import Inbox
from dpal.campaign.intake import answer_entry
from dpal.campaign.reader import Reader
from dpal.campaign.waiting import wait_for_answers


def test_it_ends_once_everything_is_answered_and_leaves_the_campaign_free_until_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = linear_campaign(tmp_path / "c", oracle="files")
    campaign.run()
    first, *others = campaign.state().groups[0]
    rounds, several = [0], threading.Event()
    taken_in: list[int] = []
    take_in = waiting.take_in

    def pause(seconds: float) -> None:
        rounds[0] += 1
        several.set() if rounds[0] > 3 else None

    def noted(*words):
        taken_in.append(take_in(*words))
        return taken_in[-1]

    monkeypatch.setattr(waiting.time, "sleep", pause)
    monkeypatch.setattr(waiting, "take_in", noted)
    # A reader of its own, as in a process of its own: one reader is not for two threads.
    waits = threading.Thread(
        target=wait_for_answers, args=(Reader(campaign.folder),), kwargs={"pool": linear_pool(), "tell": print}
    )
    waits.start()
    assert several.wait(60) and taken_in == []
    # From a file, which needs the campaign to itself; and from the page.
    campaign.add_answers(dict.fromkeys(others, "yes"), source="a file")
    Inbox(campaign.folder).add(
        answer_entry(first, 1, "", who="1", role="expert"), person="A", key="key-00000001", above=0
    )
    waits.join(60)
    assert not waits.is_alive() and taken_in == [1] and campaign.state().answers[first] == 1
