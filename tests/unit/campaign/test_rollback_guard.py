"""A database from an older backup is noticed, and one that is ahead of the note is not an error."""

from pathlib import Path
from unittest.mock import patch

import pytest
from small_facts import charged_selection, created, recorded, selected

from dpal.campaign.layout import ROLLBACK_GUARD
from dpal.campaign.rollback_guard import NewestFact, note_newest, noted_newest, require_not_behind
from dpal.errors import DamagedCampaign

FACTS = recorded(created(), charged_selection(), selected(2, "a", "b"))


def test_what_is_noted_is_read(tmp_path: Path) -> None:
    note_newest(tmp_path, FACTS[1])
    assert noted_newest(tmp_path) == NewestFact(2, "hash 2")
    note_newest(tmp_path, FACTS[2])
    assert noted_newest(tmp_path) == NewestFact(3, "hash 3")


def test_a_database_that_lacks_the_noted_fact_is_refused(tmp_path: Path) -> None:
    newest = NewestFact(3, "hash 3")
    for older in (FACTS[:2], []):
        with pytest.raises(DamagedCampaign, match=r"lacks fact 3.*second time.*Nothing was changed"):
            require_not_behind(tmp_path, newest, older)


def test_a_database_of_another_campaign_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DamagedCampaign, match="belongs to another campaign"):
        require_not_behind(tmp_path, NewestFact(2, "another hash"), FACTS)


def test_a_note_that_is_behind_is_not_an_error(tmp_path: Path) -> None:
    """The process may have died between the commit and the note."""
    for newest in FACTS:
        require_not_behind(tmp_path, NewestFact(newest.number, newest.hash), FACTS)


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"number": "x", "hash": ""}', '{"number": 3}', b"\xff"])
def test_a_missing_or_damaged_note_is_never_taken_for_no_note(tmp_path: Path, content: str | bytes | None) -> None:
    if content is not None:
        (tmp_path / ROLLBACK_GUARD).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DamagedCampaign, match=r"campaign\.head is missing or damaged"):
        noted_newest(tmp_path)


def test_a_note_that_cannot_be_read_now_is_not_called_damaged(tmp_path: Path) -> None:
    """A failing disk, or a user who may not read it: nothing has to be restored."""
    note_newest(tmp_path, FACTS[0])
    for error in (PermissionError(13, "Permission denied"), OSError(5, "Input/output error")):
        with patch.object(Path, "read_text", side_effect=error), pytest.raises(type(error), match=error.strerror):
            noted_newest(tmp_path)
