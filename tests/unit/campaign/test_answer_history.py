"""The history of answers: who, when, from what to what, from the page and from tables, and safe in a spreadsheet."""

import csv
import json
from pathlib import Path

import pytest
from command_line import dpal_here as dpal
from small_campaigns import linear_campaign, linear_pool

from dpal.campaign.answer_history import answer_history
from dpal.campaign.arranging import add_person
from dpal.campaign.campaign import Campaign
from dpal.campaign.labelling_desk import LabellingDesk
from dpal.labels.answers import answer_in_words


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    made = linear_campaign(tmp_path / "c", oracle="files")
    made.run()
    person = add_person(made.reader, "Dr. Ng")
    desk = LabellingDesk(made.folder, pool=linear_pool())
    name = desk.queue(person)[0][0]
    for number, (answer, note) in enumerate(((1, "=1+1"), (None, ""), ("cannot-tell", "blurred"))):
        desk.answer(person, name, answer, note=note, key=f"key-{number:08d}")
    made.add_answers({name: "no"}, source="week-1.csv")
    return made


def test_every_answer_from_what_to_what(campaign: Campaign) -> None:
    history = answer_history(campaign.reader)
    assert [(one.who, one.before, one.after, one.note) for one in history] == [
        ("Dr. Ng", "", "yes", "=1+1"),
        ("Dr. Ng", "yes", "", ""),
        ("Dr. Ng", "", "cannot-tell", "blurred"),
        ("week-1.csv", "", "no", ""),
    ]
    assert len({one.name for one in history}) == 1
    assert [one.at for one in history] == sorted(one.at for one in history)
    assert "yes" not in repr(history) and "blurred" not in repr(history)


def test_the_command(campaign: Campaign, tmp_path: Path) -> None:
    document = json.loads(dpal("labels", "history", "c", "--json", cwd=tmp_path).stdout)
    assert [one["after"] for one in document["internal"]] == ["yes", "", "cannot-tell", "no"]
    dpal("labels", "history", "c", "--to", "h.csv", cwd=tmp_path)
    with (tmp_path / "h.csv").open(newline="", encoding="utf-8-sig") as lines:
        rows = list(csv.DictReader(lines))
    # A spreadsheet shows it, and does not run it.
    assert rows[0]["note"] == "'=1+1" and rows[0]["who"] == "Dr. Ng"
    assert "exists already" in dpal("labels", "history", "c", "--to", "h.csv", cwd=tmp_path, codes=(2,)).stderr
    assert "blurred" in dpal("labels", "history", "c", cwd=tmp_path).stdout


def test_answers_in_words() -> None:
    assert answer_in_words(1, ("no", "yes")) == "yes"
    assert answer_in_words("skip", ("no", "yes")) == "skip"
    assert answer_in_words((1.0, 0.0, 0.5), ("a", "b", "c")) == "a, c 0.5"
    assert answer_in_words((0.0, 0.0), ("a", "b")) == "none of them"
