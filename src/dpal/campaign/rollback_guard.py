"""A second file with the newest fact's number and hash, so that a database from an older backup is noticed.

With an older database, the campaign would train and select again on charges that were paid for once.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpal.campaign.files import write_text
from dpal.campaign.layout import ROLLBACK_GUARD
from dpal.campaign.store import Recorded
from dpal.errors import DamagedCampaign


@dataclass(frozen=True, slots=True)
class NewestFact:
    """The newest fact when the guard's file was written."""

    number: int
    hash: str


def note_newest(folder: Path, newest: Recorded) -> None:
    """Write down the newest fact, after it is committed."""
    write_text(folder / ROLLBACK_GUARD, json.dumps({"number": newest.number, "hash": newest.hash}) + "\n")


def noted_newest(folder: Path) -> NewestFact:
    """What was written down. Read it before the database: a fact is committed first and written down here second."""
    path = folder / ROLLBACK_GUARD
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return NewestFact(int(document["number"]), str(document["hash"]))
    # Not every OSError: a disk that fails now, or a user who may not read, is no damage.
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise DamagedCampaign(f"{path} is missing or damaged. {_RESTORE}") from error


def require_not_behind(folder: Path, newest: NewestFact, recorded: Sequence[Recorded]) -> None:
    """Refuse a database that lacks the fact that was written down. It may hold later ones."""
    if newest.number > len(recorded) or recorded[newest.number - 1].hash != newest.hash:
        raise DamagedCampaign(
            f"The database in {folder} is older than the folder, or belongs to another campaign: it lacks fact "
            f"{newest.number}, which was recorded before. Continuing would release results a second time. {_RESTORE}"
        )


_RESTORE = "Nothing was changed. Restore the whole folder from its newest backup."
