"""SIGKILL while an answer is saved or taken in: what was acknowledged is there once, and nothing is doubled."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from killed_programs import PATH
from small_campaigns import linear_campaign
from warm_processes import python

from dpal.campaign import fault_points
from dpal.campaign.campaign import Campaign
from dpal.campaign.facts import Answered
from dpal.campaign.inbox import Inbox
from dpal.campaign.intake import answer_entry, arrangement_entry

POINTS = [point for point in fault_points.POINTS if point.startswith("inbox.")]
# Saves answers one after the other, and says so after each.
SAVE = """
import sys, json
from pathlib import Path
from dpal.campaign.inbox import Inbox
from dpal.campaign.intake import answer_entry
inbox = Inbox(Path(sys.argv[1]))
for number, name in enumerate(json.loads(sys.argv[2])):
    inbox.add(answer_entry(name, 1, "", who="1", role="expert"), person="A", key=f"key-{number:08d}", above=0)
    print(number, flush=True)
"""
TAKE_IN = "import sys; from dpal.campaign.campaign import Campaign; print(Campaign(sys.argv[1]).take_in())"


def started(code: str, *words: object, kill_at: str = "") -> subprocess.CompletedProcess[str]:
    return python(code, *words, environment=os.environ | {"PYTHONPATH": PATH, fault_points.VARIABLE: kill_at})


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("hit", [1, 3])
def test_acknowledged_answers_are_there_once(tmp_path: Path, point: str, hit: int) -> None:
    names = json.dumps([f"r{number}" for number in range(6)])
    killed = started(SAVE, tmp_path, names, kill_at=f"{point}:{hit}")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    acknowledged = len(killed.stdout.split())
    assert acknowledged == hit - 1
    saved = Inbox(tmp_path).after(0)
    assert len(saved) == acknowledged + (point == "inbox.committed")
    # The page sends everything again that was not acknowledged, with the same keys.
    assert started(SAVE, tmp_path, names).returncode == 0
    assert [entry.body["question"] for entry in Inbox(tmp_path).after(0)] == json.loads(names)


@pytest.mark.parametrize("point", ["store.in-transaction:1", "store.in-transaction:2", "store.committed:2"])
def test_a_writer_that_dies_while_taking_in_loses_and_doubles_nothing(tmp_path: Path, point: str) -> None:
    campaign = linear_campaign(tmp_path / "c", oracle="files")
    campaign.run()
    questions = campaign.state().groups[0]
    inbox = Inbox(campaign.folder)
    person = {"name": "A", "role": "expert", "generation": 0, "identity": 1}
    inbox.add(arrangement_entry(add=person), person="", key="key-arrangement", above=0)
    for number, question in enumerate(questions):
        inbox.add(
            answer_entry(question, number % 2, "", who="1", role="expert"), person="A", key=f"key-{number:08d}", above=0
        )
    killed = started(TAKE_IN, campaign.folder, kill_at=point)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = started(TAKE_IN, campaign.folder)
    assert again.returncode == 0, again.stderr
    state = Campaign(campaign.folder).state()
    assert state.answers == {question: number % 2 for number, question in enumerate(questions)}
    facts = [entry.fact for entry in Campaign(campaign.folder).reader.recorded if isinstance(entry.fact, Answered)]
    said = [opinion["question"] for fact in facts for opinion in fact.opinions]
    assert said == list(questions)
    assert Campaign(campaign.folder).verify().holds
