"""How far the campaign was when somebody last wrote, in a second file: a database from before that is noticed.

An older copy of the database would make the campaign train and select again on charges that were paid once.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpal.campaign.files import write_text
from dpal.campaign.store import Recorded
from dpal.errors import DamagedCampaign

NAME = "campaign.head"


def remember(folder: Path, recorded: Sequence[Recorded]) -> None:
    """Note the newest fact."""
    newest = recorded[-1]
    write_text(folder / NAME, json.dumps({"number": newest.number, "hash": newest.hash}) + "\n")


@dataclass(frozen=True, slots=True)
class Note:
    """The newest fact that somebody noted."""

    number: int
    hash: str


def noted(folder: Path) -> Note:
    """The note. Read it before the database: the writer notes a fact after it is committed, never before."""
    path = folder / NAME
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return Note(int(document["number"]), str(document["hash"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedCampaign(f"{path} is missing or damaged. {_RESTORE}") from error


def require_not_behind(folder: Path, note: Note, recorded: Sequence[Recorded]) -> None:
    """Refuse a database that does not hold what was noted. It may hold more."""
    if note.number > len(recorded) or recorded[note.number - 1].hash != note.hash:
        raise DamagedCampaign(
            f"The database in {folder} is older than the folder, or another one: it lacks fact {note.number}, which "
            f"was recorded once. Going on would release things a second time. {_RESTORE}"
        )


_RESTORE = "Nothing was changed. Restore the whole folder from its newest backup."
