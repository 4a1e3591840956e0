"""The reader: it reads the chain once, then only what is new, and notices a database that was exchanged."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from small_campaigns import linear_campaign

from dpal.campaign.campaign import Campaign
from dpal.campaign.facts import to_text
from dpal.campaign.layout import DATABASE, ROLLBACK_GUARD
from dpal.campaign.reader import Reader
from dpal.campaign.state import fold
from dpal.campaign.store import Recorded, Store, chained
from dpal.campaign.writer import writing
from dpal.errors import DamagedCampaign


def test_facts_that_someone_else_adds_are_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = linear_campaign(tmp_path / "c")
    reader = Reader(tmp_path / "c")
    assert reader.state().last == 1
    starts: list[int] = []
    recorded = Store.recorded

    def watched(self: Store, *, after: Recorded | None = None) -> list[Recorded]:
        starts.append(0 if after is None else after.number)
        return recorded(self, after=after)

    monkeypatch.setattr(Store, "recorded", watched)
    campaign.run()
    starts.clear()
    state = reader.state()
    # All of them: the file changed, so what was known before is compared too.
    assert starts == [0]
    reader.state()
    assert starts == [0, state.last]
    assert state.finished
    # Advancing gives the state that reading everything gives.
    assert state == fold(reader.recorded) == Reader(tmp_path / "c").state() == campaign.state()


def test_an_older_or_another_database_is_refused(tmp_path: Path) -> None:
    campaign = linear_campaign(tmp_path / "c")
    shutil.copytree(tmp_path / "c", tmp_path / "older")
    campaign.run()
    reader = Reader(tmp_path / "c")
    reader.state()
    for name in (DATABASE, ROLLBACK_GUARD):
        shutil.copy(tmp_path / "older" / name, tmp_path / "c" / name)
    # Both files are from one backup, so a new process cannot notice. This one knows better.
    with pytest.raises(DamagedCampaign, match="missing or different"):
        reader.state()
    assert Reader(tmp_path / "c").state().last == 1


def rewritten(folder: Path, number: int, *, fits: bool = True, **columns: str) -> None:
    """Change a fact in the database. With `fits`, it is the newest one, and the chain and the guard are made to fit."""
    connection = sqlite3.connect(folder / DATABASE)
    rows = {row[0]: row for row in connection.execute("SELECT number, at, kind, body, hash FROM facts")}
    fact = dict(zip(("number", "at", "kind", "body", "hash"), rows[number], strict=True)) | columns
    if fits:
        previous = rows[number - 1][4] if number > 1 else ""
        fact["hash"] = chained(previous, number, fact["at"], fact["kind"], fact["body"])
        (folder / ROLLBACK_GUARD).write_text(json.dumps({"number": number, "hash": fact["hash"]}))
    connection.execute("DROP TRIGGER facts_stay")
    changed = (fact["at"], fact["body"], fact["hash"], number)
    connection.execute("UPDATE facts SET at = ?, body = ?, hash = ? WHERE number = ?", changed)
    connection.execute("CREATE TRIGGER facts_stay BEFORE UPDATE ON facts BEGIN SELECT RAISE(ABORT, ''); END")
    connection.commit()
    connection.close()


def test_a_fact_that_changed_since_it_was_read_is_refused(tmp_path: Path) -> None:
    campaign = linear_campaign(tmp_path / "c")
    campaign.run()
    rewritten(tmp_path / "c", campaign.state().last, at="2000-01-01T00:00:00.000+00:00")
    # A new process finds a chain that fits; this one has seen another.
    assert Reader(tmp_path / "c").state().finished
    with pytest.raises(DamagedCampaign):
        campaign.state()
    with pytest.raises(DamagedCampaign), writing(campaign.reader):
        pass


def test_verify_reads_everything_again(tmp_path: Path) -> None:
    """Also facts that this process has read or written itself."""
    campaign = linear_campaign(tmp_path / "c")
    campaign.run()
    assert campaign.verify().holds
    rewritten(tmp_path / "c", 2, fits=False, at="then")
    with pytest.raises(DamagedCampaign, match=r"Fact 2 .* does not follow"):
        campaign.verify()


def test_a_plan_that_is_not_the_recorded_one_is_refused(tmp_path: Path) -> None:
    """Even with a chain that fits."""
    campaign = linear_campaign(tmp_path / "c")
    body = to_text(campaign.state().created).replace('"target_epsilon":8', '"target_epsilon":9')
    rewritten(tmp_path / "c", 1, body=body)
    with pytest.raises(DamagedCampaign, match="hash that was recorded"):
        Campaign(tmp_path / "c").status()
