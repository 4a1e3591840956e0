"""A campaign that runs in the background: started once, seen, and stopped on request, in real processes."""

import time
from pathlib import Path

import pytest
import yaml

from dpal.campaign import background
from dpal.campaign.background import last_output, start_run
from dpal.campaign.campaign import Campaign
from dpal.campaign.config import checked_config
from dpal.campaign.progress_file import progress_of, request_stop
from dpal.errors import CampaignBusy

DOCUMENT = """
data: {source: digits}
plan: {target_epsilon: 8, target_delta: 1.0e-4, initial_size: 40, query_sizes: [20], batch_size: 16, epochs: 1,
       planner: step-amplification, accountant: rdp, selection: random}
model: {name: small-cnn}
"""


def wait_for(condition, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_run_waits_for_answers_goes_on_and_stops_when_asked(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    campaign = Campaign.from_config(folder, checked_config(yaml.safe_load(DOCUMENT)))
    start_run(folder)
    try:
        with pytest.raises(CampaignBusy, match="running this campaign already"):
            start_run(folder)
        wait_for(lambda: campaign.state().groups)
        wait_for(lambda: "waiting for answers" in str((progress_of(folder) or {}).get("lines")))
        # Nobody has to start it again: it takes answers however they come, and trains.
        campaign.add_answers(dict.fromkeys(campaign.state().groups[0], 1), source="test")
        wait_for(lambda: len(campaign.state().groups) == 2)
        wait_for(lambda: "waiting for answers" in str((progress_of(folder) or {}).get("lines")))
    finally:
        assert request_stop(folder)
        wait_for(lambda: progress_of(folder) is None)
    wait_for(lambda: "Nothing is lost" in last_output(folder))
    assert campaign.verify().holds


def test_what_went_wrong_can_be_read(tmp_path: Path) -> None:
    assert last_output(tmp_path) == ""
    start_run(tmp_path)
    wait_for(lambda: "is not a campaign" in last_output(tmp_path))
    assert progress_of(tmp_path) is None


def test_a_second_click_starts_nothing_while_the_first_is_not_seen_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_START_SECONDS", 0.0)
    start_run(tmp_path)
    with pytest.raises(CampaignBusy, match="running this campaign already"):
        start_run(tmp_path)
    wait_for(lambda: "is not a campaign" in last_output(tmp_path))
    # Once it has ended, it can be started again.
    wait_for(lambda: background._started[tmp_path].poll() is not None)
    start_run(tmp_path)
    wait_for(lambda: background._started[tmp_path].poll() is not None)
